"""Facts of a device for a request, each by itself; kube-scheduler stops at the first that refuses the device."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.allocated import DeviceHolder
from engine.claims.capacity import NOTHING, Shortage, find_shortage
from engine.claims.cel.selector import Outcome
from engine.claims.device_details import DeviceTaint
from engine.claims.inventory import Inventory
from engine.claims.matching import DeviceMatcher, SelectorOrigin
from engine.claims.requests import ClaimRequest, DeviceToleration
from engine.claims.slices import DeviceId, Slice, SliceDevice

_PREVENTING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects that keep a device from being allocated; others, such as None, only inform."""


@dataclass(frozen=True, slots=True)
class SelectorOutcome:
    """A selector with its outcome on a device."""

    origin: SelectorOrigin
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Facts of a device for a request.

    of_class, of_request: outcomes of the selectors. taints: those that the request does not tolerate. shortage: of
    capacity. holder: the claim that has the device for itself.
    """

    is_class_missing: bool
    of_class: tuple[SelectorOutcome, ...]
    of_request: tuple[SelectorOutcome, ...]
    taints: tuple[DeviceTaint, ...]
    shortage: Shortage | None
    holder: DeviceHolder | None


def collect_facts(
    inventory: Inventory,
    matcher: DeviceMatcher,
    claim_title: str,
    request: ClaimRequest,
    slice_: Slice,
    device: SliceDevice,
) -> DeviceFacts:
    """Collect the facts of a device; raise FieldError or CapacityUnjudgedError for a device that cannot be judged."""
    device_id: DeviceId = (slice_.driver, slice_.pool, device.name)
    of_class, of_request = (
        tuple([SelectorOutcome(origin, matcher.evaluate(origin.selector, slice_, device)) for origin in origins])
        for origins in (
            matcher.list_class_origins(request.class_name),
            matcher.list_request_origins(claim_title, request),
        )
    )
    gates = inventory.gates
    shortage = None
    if gates.consumable_capacity:
        consumed = inventory.allocated.consumed.get(device_id, NOTHING)
        shortage = find_shortage(inventory.get_details(slice_, device).capacity, request.capacity, consumed, NOTHING)
    taints = inventory.list_taints(slice_, device) if gates.device_taints else ()
    return DeviceFacts(
        is_class_missing=request.class_name not in inventory.classes,
        of_class=of_class,
        of_request=of_request,
        taints=find_untolerated(taints, request.tolerations),
        shortage=shortage,
        holder=None if request.has_admin_access else inventory.allocated.find_holder(device_id),
    )


def find_untolerated(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> tuple[DeviceTaint, ...]:
    """Return the taints that keep a request from a device."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in _PREVENTING_EFFECTS
        and not any(is_tolerated(taint, toleration) for toleration in tolerations)
    )


def is_tolerated(taint: DeviceTaint, toleration: DeviceToleration) -> bool:
    """Return whether a toleration covers a taint; an empty effect or key stands for all, no operator for Equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"

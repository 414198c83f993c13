"""Facts of a device for a request, each by itself; kube-scheduler stops at the first that refuses the device."""

from dataclasses import dataclass

from engine.claims.allocated import DeviceHolder
from engine.claims.capacity import NOTHING, Shortage, find_shortage
from engine.claims.cel.selector import Outcome
from engine.claims.device_details import DeviceTaint
from engine.claims.inventory import Inventory
from engine.claims.matching import DeviceMatcher, SelectorOrigin
from engine.claims.requests import ClaimRequest
from engine.claims.slices import DeviceId, Slice, SliceDevice
from engine.claims.taints import find_untolerated


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

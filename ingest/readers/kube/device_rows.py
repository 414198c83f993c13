"""Devices of a node that a judged pod does not get, in the form of the records: those of claims, and shares of KAI.

A device of a claim has the reason of its first finding. Of KAI, only devices that pods share have a name: their groups,
as in KAI's own log. Devices that one pod has as a whole are counted with the node.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.cases.refused_pods import DeviceShortage, RefusedPod, UnsuitableDevice
from engine.hami import quantities
from engine.hami.reason_codes import ReasonCode
from engine.simulation.kai_shares import DeviceShare, SharedNode, get_sharing_container
from runtime.kubernetes.object_fields import get_text, iterate_objects
from schemas.events import NOT_REPORTED, DeviceKind, Refusal, Request
from schemas.json_types import Json

Containers = Sequence[tuple[str, bool]]
"""Name, and True for an init container; init containers first, as in an attempt's requests."""
_MIB: Final = 1024 * 1024
_VENDOR: Final = "NVIDIA"
_TOO_LITTLE: Final = ReasonCode.CARD_INSUFFICIENT_MEMORY.value
_HELD: Final = ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT.value
_LEFT_OVER: Final = ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST.value


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """Devices of one node, each with its verdict; without names where only the node as such is judged."""

    position: int
    """Position of the container that asks for them."""
    request: Request
    names: list[str]
    kinds: list[DeviceKind]
    used: Mapping[str, list[int]]
    """Amounts in use, by column of the node's state."""
    verdicts: list[str]
    refusal: Refusal


def read_containers(pod: Json) -> Containers:
    """Read the names of a pod's containers."""
    return [
        (get_text(container, "name"), kind == "initContainers")
        for kind in ("initContainers", "containers")
        for container in iterate_objects(pod, "spec", kind)
    ]


def build_device_rows(verdicts: RefusedPod, pod: Json, containers: Containers) -> dict[str, DeviceRows]:
    """Build the rows of the nodes whose devices were judged, by node."""
    rows: dict[str, DeviceRows] = {}
    if verdicts.shortages:
        positions = _locate_claims(pod)
        rows |= {name: _build_claim_rows(entry, positions, containers) for name, entry in verdicts.shortages.items()}
    if verdicts.shares:
        position = _locate_sharing(pod, containers)
        request = _build_share_request(verdicts.shares.share, containers, position)
        for name, node in {**verdicts.shares.too_small, **verdicts.shares.in_use}.items():
            rows[name] = _build_share_rows(node, verdicts.shares.share, request, position)
    return rows


def _locate_claims(pod: Json) -> Mapping[str, int]:
    """Locate the first container that uses each claim, by the claim's name in the cluster."""
    generated = {
        get_text(status, "name"): get_text(status, "resourceClaimName")
        for status in iterate_objects(pod, "status", "resourceClaimStatuses")
    }
    names = {
        get_text(entry, "name"): get_text(entry, "resourceClaimName") or generated.get(get_text(entry, "name"), "")
        for entry in iterate_objects(pod, "spec", "resourceClaims")
    }
    positions: dict[str, int] = {}
    for position, container in enumerate(_iterate_containers(pod)):
        for used in iterate_objects(container, "resources", "claims"):
            positions.setdefault(names.get(get_text(used, "name"), ""), position)
    return positions


def _iterate_containers(pod: Json) -> Iterator[Mapping[str, Any]]:
    for kind in ("initContainers", "containers"):
        yield from iterate_objects(pod, "spec", kind)


def _build_claim_rows(shortage: DeviceShortage, positions: Mapping[str, int], containers: Containers) -> DeviceRows:
    position = positions.get(shortage.claim.rpartition("/")[2], 0)
    container, is_init = containers[position] if containers else ("", False)
    verdicts = [device.reason.value for device in shortage.devices]
    return DeviceRows(
        position=position,
        request=Request(container=container, init=is_init, vendor=shortage.class_name, count=shortage.wanted or 1),
        names=["/".join(device.id) for device in shortage.devices],
        kinds=[_describe_kind(device) for device in shortage.devices],
        used={"slots_used": [int(device.is_held) for device in shortage.devices]},
        verdicts=verdicts,
        refusal=Refusal(counts=dict(sorted(Counter(verdicts).items())), devices=len(verdicts)),
    )


def _describe_kind(device: UnsuitableDevice) -> DeviceKind:
    """Describe a device by its model, driver and memory, as far as its driver publishes them."""
    attributes, capacity = device.device.attributes, device.device.capacity
    model = next(
        (get_text(value, "string") for name, value in attributes.items() if _is_named(name, "productName")), ""
    )
    amount = next((value for name, value in capacity.items() if _is_named(name, "memory")), None)
    memory = quantities.parse_whole(amount.get("value")) if isinstance(amount, Mapping) else None
    memory_mib = None if memory is None else memory // _MIB
    return DeviceKind(model=model, vendor=device.id[0], memory_mib=memory_mib, slots=1)


def _is_named(name: str, wanted: str) -> bool:
    # Names of attributes and capacities may have their driver before them.
    return name.rpartition("/")[2] == wanted


def _locate_sharing(pod: Json, containers: Containers) -> int:
    """Locate the container that gets the share: the one that the pod names, or the first that is no init container."""
    names = [name for name, _ in containers]
    first = next((position for position, (_, is_init) in enumerate(containers) if not is_init), 0)
    name = get_sharing_container(pod)
    return names.index(name) if name in names else first


def _build_share_request(share: DeviceShare, containers: Containers, position: int) -> Request:
    container, is_init = containers[position] if containers else ("", False)
    return Request(
        container=container,
        init=is_init,
        vendor=_VENDOR,
        count=share.devices,
        memory_mib=round(share.memory_mib) or None,
        memory_percent=round(share.fraction * 100) or None,
    )


def _build_share_rows(node: SharedNode, share: DeviceShare, request: Request, position: int) -> DeviceRows:
    """Build the rows of a node's shared devices; a node whose devices are too small lacks memory on all of them."""
    fraction = share.resolve(node.total_mib) or 0.0
    shared = {group: node.shared[group] for group in sorted(node.shared)}
    fits = [device.has_free(fraction) for device in shared.values()]
    # What a fraction is in MiB is known only with the label.
    used = [round((1 - device.free) * node.total_mib) if node.total_mib else NOT_REPORTED for device in shared.values()]
    is_small = fraction > 1
    verdicts = [_LEFT_OVER if is_free else _TOO_LITTLE for is_free in fits]
    left_over = fits.count(True) + (0 if is_small else node.idle)
    too_little = node.device_count if is_small else fits.count(False)
    counts = {_TOO_LITTLE: too_little, _HELD: node.device_count - too_little - left_over, _LEFT_OVER: left_over}
    return DeviceRows(
        position=position,
        request=request,
        names=list(shared),
        kinds=[DeviceKind(vendor=_VENDOR, memory_mib=node.total_mib or None) for _ in shared],
        used={"memory_used_mib": used},
        verdicts=verdicts,
        refusal=Refusal(counts={code: count for code, count in counts.items() if count > 0}, devices=node.device_count),
    )

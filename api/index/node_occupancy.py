"""What was held of a node's devices at one time, and by whom: from the stays of that time and the registrations. Pure.

What a pod takes of a device is counted as the audit of overcommitted devices counts it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import reduce

from api.index.attempt_queries import schedulerlog_path
from schemas.answers.placements import DeviceOccupancy, DeviceRegistered, Holder, NodeOccupancy, PodOnNode
from schemas.codec.records import rfc3339
from schemas.placements import DeviceAllocation, PodPlacement
from summaries.overcommit import DeviceAmounts, taken


def node_occupancy(
    node: str,
    at: datetime,
    stays: Iterable[PodPlacement],
    registered: Iterable[DeviceRegistered],
    device: str | None = None,
) -> NodeOccupancy:
    """Of all ``registered`` devices in their order and of others that were held, or of ``device`` alone."""
    here = sorted((each for each in stays if each.is_on(at)), key=lambda each: (each.started_at, str(each.pod)))
    offers: dict[str, DeviceRegistered | None] = {each.uuid: each for each in registered}
    offers |= {row.uuid: None for stay in here for row in stay.allocations if row.uuid not in offers}
    return NodeOccupancy(
        node=node,
        at=rfc3339(at),
        devices=[_device_held(uuid, offer, here) for uuid, offer in offers.items() if device in (None, uuid)],
        pods=[_pod_here(each) for each in here],
    )


def _device_held(uuid: str, offer: DeviceRegistered | None, here: Sequence[PodPlacement]) -> DeviceOccupancy:
    holding = [(stay, rows) for stay in here if (rows := [row for row in stay.allocations if row.uuid == uuid])]
    rows = [row for _, held in holding for row in held]
    amounts = _sum(taken(held, uuid) for _, held in holding)
    said = next((row.model for row in rows if row.model), "")
    return DeviceOccupancy(
        uuid=uuid,
        model=offer.model if offer else said,
        memory_total_mib=offer.memory_mib if offer else None,
        memory_held_mib=None if any(row.memory_mib is None for row in rows) else amounts.memory_mib,
        cores_total_percent=offer.cores_percent if offer else None,
        cores_held_percent=None if any(row.cores_percent is None for row in rows) else amounts.cores_percent,
        slots_total=offer.slots if offer else None,
        slots_held=amounts.slots,
        healthy=offer.healthy if offer else None,
        held_by=[_holder(stay, row) for stay, held in holding for row in held],
    )


def _sum(amounts: Iterable[DeviceAmounts]) -> DeviceAmounts:
    return reduce(DeviceAmounts.plus, amounts, DeviceAmounts())


def _holder(stay: PodPlacement, row: DeviceAllocation) -> Holder:
    said = {
        "namespace": stay.pod.namespace,
        "name": stay.pod.name,
        "container": row.container,
        "init": row.init,
        "memory_mib": row.memory_mib,
        "cores_percent": row.cores_percent,
        "slots": row.slots,
        "started_at": rfc3339(stay.started_at),
        "attempt_id": stay.attempt_id,
    }
    return Holder.model_validate(said)


def _pod_here(stay: PodPlacement) -> PodOnNode:
    said = {
        "namespace": stay.pod.namespace,
        "name": stay.pod.name,
        "pod_uid": stay.pod.uid,
        "phase": stay.phase,
        "started_at": rfc3339(stay.started_at),
        "devices": list(dict.fromkeys(row.uuid for row in stay.allocations)),
        "schedulerlog": schedulerlog_path(stay.pod.namespace, stay.pod.name),
    }
    return PodOnNode.model_validate(said)

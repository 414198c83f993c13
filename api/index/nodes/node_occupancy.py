"""Pods on a node at one time with their parts of its devices, from placements and registrations. Pure.

The amounts that a pod takes of a device are those of the audit of overcommitted devices
(``engine.summaries.overcommit``).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import reduce

from api.http.cluster import Cluster
from engine.summaries.overcommit import DeviceAmounts, calculate_peak
from schemas.answers.placements import DeviceOccupancy, DeviceRegistered, Holder, NodeOccupancy, PodOnNode
from schemas.codec.records import format_rfc3339
from schemas.events import DeviceAllocation
from schemas.placements import PodPlacement


def describe_occupancy(
    cluster: Cluster,
    node: str,
    moment: datetime,
    placements: Iterable[PodPlacement],
    registered: Iterable[DeviceRegistered],
    device: str | None = None,
    *,
    cordoned: bool | None = None,
) -> NodeOccupancy:
    """Describe the occupancy of ``node`` at ``moment``.

    Placements of other times are left out. Its devices are those of ``registered``, in their order, then any other that
    a pod holds; only ``device`` (a UUID) if one is given. ``cordoned``: true if the node takes no further pods.
    """
    current = list_current(placements, moment)
    devices = [row for row in describe_devices(current, registered) if device in (None, row.uuid)]
    return NodeOccupancy(
        node=node,
        at=format_rfc3339(moment),
        cordoned=cordoned,
        devices=devices,
        free_devices=0 if cordoned else count_free_devices(devices),
        pods=[_to_pod_on_node(cluster, placement) for placement in current],
    )


def list_current(placements: Iterable[PodPlacement], moment: datetime) -> list[PodPlacement]:
    """List the placements of pods that were there at ``moment``, by start and name."""
    return sorted(
        (placement for placement in placements if placement.is_on(moment)),
        key=lambda placement: (placement.started_at, str(placement.pod)),
    )


def describe_devices(current: Sequence[PodPlacement], registered: Iterable[DeviceRegistered]) -> list[DeviceOccupancy]:
    """Describe what the pods of ``current`` hold of each device: those of ``registered``, in their order, then others
    that a pod holds."""
    registrations = {row.uuid: row for row in registered}
    # A device can be allocated and not registered: its registration is unknown, or it was lost in the meantime.
    allocated: dict[str, list[tuple[PodPlacement, list[DeviceAllocation]]]] = {uuid: [] for uuid in registrations}
    for placement in current:
        for uuid, rows in _group_by_device(placement).items():
            allocated.setdefault(uuid, []).append((placement, rows))
    return [_to_device_occupancy(uuid, registrations.get(uuid), pods) for uuid, pods in allocated.items()]


def _group_by_device(placement: PodPlacement) -> dict[str, list[DeviceAllocation]]:
    rows: dict[str, list[DeviceAllocation]] = {}
    for row in placement.allocations:
        rows.setdefault(row.uuid, []).append(row)
    return rows


def count_free_devices(devices: Iterable[DeviceOccupancy]) -> int:
    """Count the devices that a pod could get completely on a node that is not cordoned."""
    return sum(is_usable(device) and not device.held_by for device in devices)


def is_usable(device: DeviceOccupancy) -> bool:
    """Tell whether pods can get the device or its free part."""
    return device.healthy is not False and not device.cordoned


def _to_device_occupancy(
    uuid: str, registration: DeviceRegistered | None, allocated: Sequence[tuple[PodPlacement, list[DeviceAllocation]]]
) -> DeviceOccupancy:
    all_rows = [row for _, rows in allocated for row in rows]
    # Summed pod by pod, because init containers of one pod run one after the other, but those of two pods in parallel.
    amounts = _sum(calculate_peak(rows, uuid) for _, rows in allocated)
    model = next((row.model for row in all_rows if row.model), "")
    return DeviceOccupancy(
        uuid=uuid,
        model=registration.model if registration else model,
        memory_total_mib=registration.memory_mib if registration else None,
        # One unknown amount makes the sum unknown: a number without it would look like free memory.
        memory_held_mib=None if any(row.memory_mib is None for row in all_rows) else amounts.memory_mib,
        cores_total_percent=registration.cores_percent if registration else None,
        cores_held_percent=None if any(row.cores_percent is None for row in all_rows) else amounts.cores_percent,
        slots_total=registration.slots if registration else None,
        slots_held=amounts.slots,
        healthy=registration.healthy if registration else None,
        cordoned=registration.cordoned if registration else None,
        held_by=[_to_holder(placement, row) for placement, rows in allocated for row in rows],
    )


def _sum(amounts: Iterable[DeviceAmounts]) -> DeviceAmounts:
    return reduce(DeviceAmounts.add, amounts, DeviceAmounts())


def _to_holder(placement: PodPlacement, row: DeviceAllocation) -> Holder:
    return Holder(
        namespace=placement.pod.namespace,
        name=placement.pod.name,
        container=row.container,
        init=row.init,
        memory_mib=row.memory_mib,
        cores_percent=row.cores_percent,
        slots=row.slots,
        started_at=format_rfc3339(placement.started_at),
        attempt_id=placement.attempt_id,
    )


def _to_pod_on_node(cluster: Cluster, placement: PodPlacement) -> PodOnNode:
    return PodOnNode(
        namespace=placement.pod.namespace,
        name=placement.pod.name,
        pod_uid=placement.pod.uid,
        phase=placement.phase,
        started_at=format_rfc3339(placement.started_at),
        devices=list(dict.fromkeys(row.uuid for row in placement.allocations)),
        schedulerlog=cluster.link_schedulerlog(placement.pod.namespace, placement.pod.name),
    )

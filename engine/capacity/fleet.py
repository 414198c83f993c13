"""Devices of a node in sums that add up over a fleet: by model, by namespace, and devices that no pod gets."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from schemas.answers.nodes import DeviceFill, ExcludedDevice, ModelOnNode, NamespaceOnNode
from schemas.answers.placements import DeviceOccupancy


class DeviceSums(NamedTuple):
    """Sums over the devices of one node; the fields are those of an item of the list of nodes."""

    models: list[ModelOnNode]
    fill: list[DeviceFill]
    excluded: list[ExcludedDevice]
    held: list[NamespaceOnNode]


def add_devices(devices: Sequence[DeviceOccupancy], *, is_closed: bool) -> DeviceSums:
    """Add up the devices of a node. is_closed: the node is cordoned, and nothing of it is free."""
    by_model: dict[str, list[DeviceOccupancy]] = {}
    for device in devices:
        by_model.setdefault(device.model, []).append(device)
    return DeviceSums(
        [_add_model(model, by_model[model], is_closed=is_closed) for model in sorted(by_model)],
        [_to_fill(device) for device in devices],
        [
            ExcludedDevice(uuid=device.uuid, model=device.model, healthy=device.healthy, cordoned=device.cordoned)
            for device in devices
            if not _is_usable(device)
        ],
        _add_namespaces(devices),
    )


def _add_model(model: str, devices: Sequence[DeviceOccupancy], *, is_closed: bool) -> ModelOnNode:
    usable = [] if is_closed else [device for device in devices if _is_usable(device)]
    is_divided = all(device.memory_total_mib is not None and device.memory_held_mib is not None for device in devices)
    has_cores = all(
        device.cores_total_percent is not None and device.cores_held_percent is not None for device in devices
    )
    in_pieces = [device for device in usable if device.held_by]
    return ModelOnNode(
        model=model,
        devices=sum(map(_count_devices, devices)),
        free_devices=sum(map(_count_free, usable)),
        memory_total_mib=sum(device.memory_total_mib or 0 for device in devices) if is_divided else None,
        memory_held_mib=sum(device.memory_held_mib or 0 for device in devices) if is_divided else None,
        memory_free_mib=_sum_free(usable) if is_divided else None,
        memory_in_pieces_mib=_sum_free(in_pieces) if is_divided else None,
        memory_stranded_mib=_sum_free(filter(_is_exhausted, in_pieces)) if is_divided else None,
        cores_total_percent=sum(device.cores_total_percent or 0 for device in devices) if has_cores else None,
        cores_held_percent=sum(device.cores_held_percent or 0 for device in devices) if has_cores else None,
    )


def _to_fill(device: DeviceOccupancy) -> DeviceFill:
    return DeviceFill(
        model=device.model,
        memory_percent=_compute_percent(device.memory_held_mib, device.memory_total_mib),
        cores_percent=_compute_percent(device.cores_held_percent, device.cores_total_percent),
        slots_percent=_compute_percent(device.slots_held, device.slots_total),
        healthy=device.healthy,
        cordoned=device.cordoned,
    )


def _compute_percent(held: int | None, total: int | None) -> int | None:
    """Compute a share, rounded up: what is held in part is not shown as free."""
    return -(-100 * held // total) if held is not None and total else None


def _is_usable(device: DeviceOccupancy) -> bool:
    return device.healthy is not False and not device.cordoned


def _is_exhausted(device: DeviceOccupancy) -> bool:
    """Tell whether all cores or slots are held: HAMi gives no more of such a device, however little a pod asks for."""
    cores, slots = device.cores_total_percent, device.slots_total
    has_no_cores = bool(cores) and (device.cores_held_percent or 0) >= (cores or 0)
    return has_no_cores or (slots is not None and device.slots_held >= slots)


def _count_devices(device: DeviceOccupancy) -> int:
    """Count the devices behind the row: without a device plugin that registers each, a row has all of a resource."""
    return device.slots_total or 0 if _is_resource(device) else 1


def _is_resource(device: DeviceOccupancy) -> bool:
    return device.memory_total_mib is None and device.slots_total is not None


def _count_free(device: DeviceOccupancy) -> int:
    if _is_resource(device):
        return max((device.slots_total or 0) - device.slots_held, 0)
    return int(not device.held_by)


def _sum_free(devices: Iterable[DeviceOccupancy]) -> int:
    return sum(max((device.memory_total_mib or 0) - (device.memory_held_mib or 0), 0) for device in devices)


def _add_namespaces(devices: Sequence[DeviceOccupancy]) -> list[NamespaceOnNode]:
    held: dict[str, list[tuple[str, str, int, int, int]]] = {}
    for device in devices:
        for holder in device.held_by:
            count = holder.slots if _is_resource(device) else 1
            row = (holder.name, device.uuid, count, holder.memory_mib or 0, holder.cores_percent or 0)
            held.setdefault(holder.namespace, []).append(row)
    return [
        NamespaceOnNode(
            namespace=namespace,
            pods=len({name for name, *_ in rows}),
            devices=sum({(name, uuid): count for name, uuid, count, *_ in rows}.values()),
            memory_mib=sum(memory for *_, memory, _ in rows),
            cores_percent=sum(cores for *_, cores in rows),
        )
        for namespace, rows in sorted(held.items())
    ]

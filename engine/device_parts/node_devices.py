"""The devices of one node with what its pods hold, of whichever system shares them out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.device_parts import koordinator, volcano
from engine.device_parts.divisible import WHOLE_DEVICE, DevicePart, DivisibleDevice, HeldPart
from engine.hami.registration import Device, Registration
from runtime.kubernetes.object_fields import Fields, get_text
from schemas.events import DeviceAllocation


def list_node_devices(node: Fields, listed: Fields | None, pods: Iterable[Fields] = ()) -> list[DivisibleDevice]:
    """List the devices of a node: those of Koordinator's object ``listed``, else those that it registers with Volcano.

    ``pods``: those on the node that have not ended.
    """
    devices = list(koordinator.list_devices(listed)) if listed else list(volcano.list_devices(node))
    list_shares = koordinator.list_shares if listed else volcano.list_shares
    held: dict[str, list[HeldPart]] = {}
    for pod in pods if devices else ():
        for share in list_shares(pod):
            if device := find_device(devices, share):
                held.setdefault(device.name, []).append(_to_held(pod, share, device))
    return [replace(device, shares=tuple(held.get(device.name, ()))) for device in devices]


def find_device(devices: Sequence[DivisibleDevice], share: DevicePart) -> DivisibleDevice | None:
    """Find the device of a part; one that is cut by MIG has the device's UUID in its own name."""
    named = (device for device in devices if share.device == device.name)
    # Only a UUID is within another name by no accident.
    of_uuid = (device for device in devices if device.id == device.name and device.name in share.device)
    return next(named, None) or next(of_uuid, None)


def list_part_allocations(pod: Fields) -> list[DeviceAllocation]:
    """List the parts of devices that a pod on a node holds, without the devices' objects."""
    node = get_text(pod, "spec", "nodeName")
    of_koordinator = [share._replace(device=f"{node}/{share.device}") for share in koordinator.list_shares(pod)]
    return [
        DeviceAllocation(
            uuid=share.device, container=share.container, memory_mib=share.memory_mib, cores_percent=share.cores_percent
        )
        for share in (*of_koordinator, *volcano.list_shares(pod))
    ]


def measure_share(share: DevicePart, device: DivisibleDevice | None) -> int | None:
    """Measure the memory of a share in MiB; None if only its percentage of an unknown device is known."""
    if share.memory_mib is not None or share.memory_percent is None:
        return share.memory_mib
    return (
        device.memory_mib * share.memory_percent // WHOLE_DEVICE if device and device.memory_mib is not None else None
    )


def _to_held(pod: Fields, share: DevicePart, device: DivisibleDevice) -> HeldPart:
    namespace, name = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
    return HeldPart(namespace, name, share.cores_percent, measure_share(share, device) or 0)


def to_registration(devices: Sequence[DivisibleDevice]) -> Registration:
    """Convert devices to the form of a registration, by which they are observed."""
    return Registration(
        tuple(
            Device(
                uuid=device.id,
                index=device.index,
                slots=device.slots or WHOLE_DEVICE,
                memory_mib=device.memory_mib or 0,
                cores=WHOLE_DEVICE,
                model=device.model,
                numa=device.numa,
                is_healthy=device.is_healthy,
            )
            for device in devices
        ),
        "json",
    )

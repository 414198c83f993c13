"""The devices that a pod's annotations say it holds: container by container, and of every vendor."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.hami.allocation import AllocatedDevice, AllocationError, decode_devices
from engine.hami.json_values import to_mapping
from schemas.events import DeviceAllocation

# All vendors' annotations are called so (``engine/hami/vendor_catalog.py``), also those of vendors that we don't know.
_ALLOCATED: Final = re.compile(r"hami\.io/[\w.-]+-devices-allocated")


def list_allocations(pod: Mapping[str, Any]) -> list[DeviceAllocation]:
    """List a pod's devices by container, init containers first; an annotation that can't be read holds none.

    A pod that is not bound may carry the annotations of a decision that was given up.
    """
    annotations = to_mapping(to_mapping(pod.get("metadata")).get("annotations"))
    keys = sorted(key for key in annotations if _ALLOCATED.fullmatch(key))
    names = list(_list_containers(pod)) if keys else []
    rows = [row for key in keys for row in _decode_rows(annotations[key], names)]
    # Sorted by container over all vendors; the sort keeps the order within one.
    return [allocation for _, allocation in sorted(rows, key=lambda row: row[0])]


def _decode_rows(text: Any, names: list[tuple[str, bool]]) -> Iterator[tuple[int, DeviceAllocation]]:
    try:
        containers = decode_devices(text) if isinstance(text, str) else ()
    except AllocationError:
        return
    for position, devices in enumerate(containers):
        # HAMi v2.10.0 left out the empty places of containers without devices on some nodes. Then places and names
        # don't correspond, unless there is just one container.
        is_whole = len(containers) - 1 == len(names)
        name, is_init = names[position] if is_whole and position < len(names) else (_get_only_name(names), False)
        for device in devices:
            yield position, _to_allocation(device, name, is_init=is_init)


def _get_only_name(names: list[tuple[str, bool]]) -> str:
    return names[0][0] if len(names) == 1 else ""


def _to_allocation(device: AllocatedDevice, container: str, *, is_init: bool) -> DeviceAllocation:
    return DeviceAllocation(
        uuid=device.uuid,
        container=container,
        init=is_init,
        memory_mib=device.memory_mib,
        cores_percent=device.cores,
    )


def _list_containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """List the name of each container, and whether it is an init container."""
    spec = to_mapping(pod.get("spec"))
    for key in ("initContainers", "containers"):
        listed = spec.get(key)
        for container in listed if isinstance(listed, list) else ():
            name = to_mapping(container).get("name")
            yield name if isinstance(name, str) else "", key == "initContainers"

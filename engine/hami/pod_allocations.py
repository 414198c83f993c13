"""The devices that a pod's annotations say it holds: container by container, and of every vendor."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.hami.allocation import AllocatedDevice, AllocationError, decode_devices
from engine.hami.json_values import mapping
from schemas.events import DeviceAllocation

# All vendors' annotations are called so (``engine/hami/vendor_catalog.py``), also those of vendors that we don't know.
_ALLOCATED: Final = re.compile(r"hami\.io/[\w.-]+-devices-allocated")


def pod_allocations(pod: Mapping[str, Any]) -> list[DeviceAllocation]:
    """In the order of the containers, init containers first; of an annotation that can't be read, nothing.

    A pod that is not bound may carry the annotations of a decision that was given up.
    """
    annotations = mapping(mapping(pod.get("metadata")).get("annotations"))
    keys = sorted(key for key in annotations if _ALLOCATED.fullmatch(key))
    names = list(_containers(pod)) if keys else []
    found = [row for key in keys for row in _rows(annotations[key], names)]
    # Sorted by container over all vendors; the sort keeps the order within one.
    return [allocation for _, allocation in sorted(found, key=lambda row: row[0])]


def _rows(text: Any, names: list[tuple[str, bool]]) -> Iterator[tuple[int, DeviceAllocation]]:
    try:
        containers = decode_devices(text) if isinstance(text, str) else ()
    except AllocationError:
        return
    for place, devices in enumerate(containers):
        # HAMi v2.10.0 left out the empty places of containers without devices on some nodes. Then places and names
        # don't correspond, unless there is just one container.
        is_whole = len(containers) - 1 == len(names)
        name, is_init = names[place] if is_whole and place < len(names) else (_only_name(names), False)
        for device in devices:
            yield place, _allocation(device, name, is_init=is_init)


def _only_name(names: list[tuple[str, bool]]) -> str:
    return names[0][0] if len(names) == 1 else ""


def _allocation(device: AllocatedDevice, container: str, *, is_init: bool) -> DeviceAllocation:
    return DeviceAllocation(
        uuid=device.uuid,
        container=container,
        init=is_init,
        memory_mib=device.memory_mib,
        cores_percent=device.cores,
    )


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Name of each container, and whether it is an init container."""
    spec = mapping(pod.get("spec"))
    for key in ("initContainers", "containers"):
        listed = spec.get(key)
        for container in listed if isinstance(listed, list) else ():
            name = mapping(container).get("name")
            yield name if isinstance(name, str) else "", key == "initContainers"

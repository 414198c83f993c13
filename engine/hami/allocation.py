"""The annotations of a pod that list the devices of its containers.

`hami.io/vgpu-devices-allocated`: per device `uuid,vendor,memory MiB,cores:`, each container ended by `;`, init
containers first. A container without devices keeps its empty place (HAMi v2.10.0 dropped it on some nodes; the
documented form is positional). `hami.io/vgpu-mig-allocations`: the MIG instances and their placements, as JSON.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from engine.hami.go_values import INT32, parse_integer, to_mapping
from engine.hami.mig import Placement
from engine.hami.releases import RULES_OF_2_10, ReleaseRules
from schemas.events import DeviceAllocation


class AllocatedDevice(NamedTuple):
    """Device, or share of a device, of a container. type: the vendor's word; cores: percent of a device; slots: its
    slots that the share takes."""

    uuid: str
    type: str
    memory_mib: int
    cores: int
    slots: int = 1


class AllocationError(ValueError):
    """Unreadable annotation of a pod, which then holds nothing; the message names the part and the mistake."""


def encode_devices(containers: Iterable[Iterable[AllocatedDevice]], rules: ReleaseRules = RULES_OF_2_10) -> str:
    """Encode the annotation's value; a container without devices is only a `;`."""
    return "".join("".join(f"{_encode_device(device, rules)}:" for device in held) + ";" for held in containers)


def _encode_device(device: AllocatedDevice, rules: ReleaseRules) -> str:
    fields = [device.uuid, device.type, str(device.memory_mib), str(device.cores)]
    return ",".join([*fields, str(device.slots)] if rules.counts_slots and device.slots > 1 else fields)


def decode_devices(text: str, rules: ReleaseRules = RULES_OF_2_10) -> tuple[tuple[AllocatedDevice, ...], ...]:
    """Decode the devices of each container. The text after the last `;` counts as a container too, as in HAMi.

    Parts without a comma are skipped, unless the release refuses them. Raises `AllocationError` for a device with fewer
    than four fields or with an invalid number, and for what the release refuses.
    """
    # HAMi splits at every ``;`` too, so ``a;`` is two containers, the second without devices.
    return tuple(
        tuple(
            _decode_device(part, rules) for part in segment.split(":") if "," in part or (part and rules.denies_damaged)
        )
        for segment in text.split(";")
    )


def _decode_device(part: str, rules: ReleaseRules) -> AllocatedDevice:
    fields = part.split(",")
    # More than four are accepted, as in HAMi: its decoder reads the first four, and the fifth since v2.11.
    if len(fields) < 4:
        raise AllocationError(f"device {part!r:.80} has {len(fields)} fields, write uuid,type,memory,cores")
    # HAMi holds both in an int32 and refuses the annotation when one does not fit.
    memory, cores = parse_integer(fields[2], *INT32), parse_integer(fields[3], *INT32)
    if memory is None or cores is None:
        raise AllocationError(f"device {part!r:.80}: write whole numbers of 32 bits for memory and cores")
    if rules.denies_damaged and (not fields[0] or not fields[1] or memory < 0 or cores < 0):
        raise AllocationError(f"device {part!r:.80}: write a UUID, a type, and amounts from 0")
    # HAMi ignores a fifth field that is not a number: losing the whole annotation would be worse.
    slots = parse_integer(fields[4], 0, INT32[1]) if rules.counts_slots and len(fields) > 4 else None
    return AllocatedDevice(fields[0], fields[1], memory, cores, max(slots or 1, 1))


class MigAllocation(NamedTuple):
    """MIG instance of a pod. container, device: positions in the pod and in the container.

    The device plugin fills the last three fields when it has created the instance.
    """

    container: int
    device: int
    uuid: str
    profile: str
    placement: Placement
    mig_uuid: str = ""
    gpu_instance: int | None = None
    compute_instance: int | None = None


def encode_mig(allocations: Sequence[MigAllocation]) -> str:
    """Encode the annotation's value, with HAMi's order of fields."""
    rows = [
        {
            "containerIndex": row.container,
            "deviceIndex": row.device,
            "gpuUUID": row.uuid,
            "profile": row.profile,
            "placement": {"start": row.placement.start, "size": row.placement.size},
        }
        for row in allocations
    ]
    return orjson.dumps(rows).decode()


def decode_mig(text: str) -> tuple[MigAllocation, ...]:
    """Decode the MIG instances of a pod; an empty text holds none.

    Raises `AllocationError` for an incomplete entry, a value of a wrong type, and a device that is named twice.
    """
    if not text:
        return ()
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise AllocationError(f"character {error.pos} is not JSON ({error.msg})") from None
    # Go decodes ``null`` into an empty slice without an error.
    if not isinstance(rows, list | None):
        raise AllocationError("is not a JSON array")
    allocations = tuple(_decode_mig_allocation(row, position) for position, row in enumerate(rows or ()))
    positions = [(row.container, row.device) for row in allocations]
    if len(set(positions)) != len(positions):
        raise AllocationError("names one device of one container twice")
    return allocations


def _decode_mig_allocation(row: Any, position: int) -> MigAllocation:
    fields = _lower_keys(row, f"entry {position}")
    span = _lower_keys(fields.get("placement"), f"entry {position}, placement")
    placement = Placement(_read_number(span, "start", 2**32 - 1) or 0, _read_number(span, "size", 2**32 - 1) or 0)
    allocation = MigAllocation(
        _read_number(fields, "containerindex", 2**63 - 1) or 0,
        _read_number(fields, "deviceindex", 2**63 - 1) or 0,
        _read_string(fields, "gpuuuid"),
        _read_string(fields, "profile"),
        placement,
        _read_string(fields, "miguuid"),
        _read_number(fields, "gpuinstanceid", 2**63 - 1),
        _read_number(fields, "computeinstanceid", 2**63 - 1),
    )
    runtime = (allocation.mig_uuid or None, allocation.gpu_instance, allocation.compute_instance)
    if not (allocation.uuid and allocation.profile and placement.size):
        raise AllocationError(f"entry {position} is incomplete, write gpuUUID, profile and placement")
    # The device plugin writes the three together, so a part of them is a damaged annotation.
    if 0 < sum(part is not None for part in runtime) < len(runtime):
        raise AllocationError(
            f"entry {position} has some of migUUID, gpuInstanceID, computeInstanceID, write all or none"
        )
    return allocation


def _lower_keys(row: Any, location: str) -> Mapping[str, Any]:
    if not isinstance(row, dict | None):
        raise AllocationError(f"{location} is not a JSON object")
    # As ``encoding/json``: keys in any case, and null leaves the field at its zero value.
    return {key.lower(): value for key, value in (row or {}).items() if value is not None}


def _read_number(fields: Mapping[str, Any], field: str, high: int) -> int | None:
    value = fields.get(field)
    # In Python a bool is an int; Go refuses ``true`` for a number.
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high):
        raise AllocationError(f"field {field} is {value!r:.40}, write a whole number from 0 to {high}")
    return value


def _read_string(fields: Mapping[str, Any], field: str) -> str:
    value = fields.get(field, "")
    if not isinstance(value, str):
        raise AllocationError(f"field {field} is {value!r:.40}, write a string")
    return value


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

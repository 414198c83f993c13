"""The annotations that say which devices a pod's containers hold.

`hami.io/vgpu-devices-allocated`: per device `uuid,vendor,memory MiB,cores:`, per container ended by `;`, init
containers first. A container without devices keeps its empty place (HAMi v2.10.0 dropped it on some nodes; the
documented form is positional). `hami.io/vgpu-mig-allocations`: where on MIG cards the instances stand, as JSON.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from hami.mig import Placement
from hami.registration import go_integer

NODE: Final = "hami.io/vgpu-node"
TIME: Final = "hami.io/vgpu-time"
TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
MIG_ALLOCATIONS: Final = "hami.io/vgpu-mig-allocations"

_INT32: Final = (-(2**31), 2**31 - 1)


@dataclass(frozen=True, slots=True)
class Held:
    """One device held by one container, as the annotation says it."""

    uuid: str
    type: str
    memory_mib: int
    cores: int


class AllocationError(ValueError):
    """The annotation can't be read; the message says what is wrong with which part. The pod then holds nothing."""


def encode_devices(containers: Iterable[Iterable[Held]]) -> str:
    """The annotation's text; `;` stands for a container without devices."""
    return "".join(
        "".join(f"{held.uuid},{held.type},{held.memory_mib},{held.cores}:" for held in container) + ";"
        for container in containers
    )


def decode_devices(text: str) -> tuple[tuple[Held, ...], ...]:
    """One tuple per container. What follows the last `;` counts as a container too, as in HAMi.

    Raises AllocationError for a device with fewer than four fields or a number that is none. A part without any comma
    is skipped.
    """
    return tuple(tuple(_held(part) for part in segment.split(":") if "," in part) for segment in text.split(";"))


def _held(part: str) -> Held:
    fields = part.split(",")
    if len(fields) < 4:
        raise AllocationError(f"device {part!r:.80} has {len(fields)} fields, not uuid,type,memory,cores")
    memory, cores = go_integer(fields[2], *_INT32), go_integer(fields[3], *_INT32)
    if memory is None or cores is None:
        raise AllocationError(f"device {part!r:.80}: memory and cores must be whole numbers of 32 bits")
    return Held(fields[0], fields[1], memory, cores)


@dataclass(frozen=True, slots=True)
class MigAllocation:
    """Where one MIG instance of a pod stands. The three runtime fields are filled once the instance exists."""

    container: int
    device: int
    uuid: str
    profile: str
    placement: Placement
    mig_uuid: str = ""
    gpu_instance: int | None = None
    compute_instance: int | None = None


def encode_mig(allocations: Sequence[MigAllocation]) -> str:
    """The annotation's JSON, in HAMi's field order."""
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
    """Raises AllocationError unless every entry is complete, of the right types, and no device is named twice."""
    if not text:
        return ()
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise AllocationError(f"character {error.pos} is not JSON ({error.msg})") from None
    if not isinstance(rows, list | None):
        raise AllocationError("is not a JSON array")
    allocations = tuple(_mig_allocation(row, place) for place, row in enumerate(rows or ()))
    places = [(row.container, row.device) for row in allocations]
    if len(set(places)) != len(places):
        raise AllocationError("names one device of one container twice")
    return allocations


def _mig_allocation(row: Any, place: int) -> MigAllocation:
    said = _said(row, f"entry {place}")
    spot = _said(said.get("placement"), f"entry {place}, placement")
    placement = Placement(_number(spot, "start", 2**32 - 1) or 0, _number(spot, "size", 2**32 - 1) or 0)
    allocation = MigAllocation(
        _number(said, "containerindex", 2**63 - 1) or 0,
        _number(said, "deviceindex", 2**63 - 1) or 0,
        _word(said, "gpuuuid"),
        _word(said, "profile"),
        placement,
        _word(said, "miguuid"),
        _number(said, "gpuinstanceid", 2**63 - 1),
        _number(said, "computeinstanceid", 2**63 - 1),
    )
    runtime = (allocation.mig_uuid or None, allocation.gpu_instance, allocation.compute_instance)
    if not (allocation.uuid and allocation.profile and placement.size):
        raise AllocationError(f"entry {place} is incomplete: gpuUUID, profile and placement are needed")
    if 0 < sum(part is not None for part in runtime) < len(runtime):
        raise AllocationError(f"entry {place} has only a part of migUUID, gpuInstanceID, computeInstanceID")
    return allocation


def _said(row: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(row, dict | None):
        raise AllocationError(f"{place} is not a JSON object")
    return {key.lower(): value for key, value in (row or {}).items() if value is not None}


def _number(said: Mapping[str, Any], field: str, high: int) -> int | None:
    value = said.get(field)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high):
        raise AllocationError(f"field {field} is {value!r:.40}, not a whole number from 0 to {high}")
    return value


def _word(said: Mapping[str, Any], field: str) -> str:
    value = said.get(field, "")
    if not isinstance(value, str):
        raise AllocationError(f"field {field} is {value!r:.40}, not a string")
    return value

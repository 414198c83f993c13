"""Volcano's vGPU devices: the register annotation of a node, what pods hold, and what a pod asks for.

Sources: ``pkg/scheduler/api/devices/nvidia/vgpu`` of Volcano and the vGPU device plugin of 2026-08. A node registers
with HAMi's fields up to v2.7 without cores and NUMA node; whether a device is healthy decides nothing in the scheduler.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from engine.device_parts.divisible import WHOLE_DEVICE, DevicePart, DivisibleDevice, PartRequest, read_amount
from engine.hami.annotations import NO_USE_TYPE, USE_TYPE
from engine.hami.reason_codes import ReasonCode
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

REGISTER: Final = "volcano.sh/node-vgpu-register"
IDS: Final = "volcano.sh/vgpu-ids-new"
REFUSAL: Final = "hami-vgpuDeviceSharing error"
"""Reason of a node without enough devices."""
GPU: Final = "gpu"
_DOMAIN: Final = "volcano.sh/vgpu-"
_NUMBER, _MEMORY, _PERCENT, _CORES = (f"{_DOMAIN}{part}" for part in ("number", "memory", "memory-percentage", "cores"))
_FIELDS: Final = 6
_HELD_FIELDS: Final = 4
ASSIGNED: Final = "volcano.sh/vgpu-node"
"""Annotation of a pod that Volcano has given devices: their node."""
_MODE: Final = "volcano.sh/vgpu-mode"
_USE_UUID, _NO_USE_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
ANNOTATIONS: Final = (IDS, USE_TYPE, NO_USE_TYPE, _USE_UUID, _NO_USE_UUID, _MODE)
"""Annotations of pods that decide about devices."""


def list_devices(node: Fields) -> Iterator[DivisibleDevice]:
    """Iterate over the devices that a node registers; none where the text is not a registration."""
    name = get_text(node, "metadata", "name")
    parts = get_text(node, "metadata", "annotations", REGISTER).split(":")
    rows = [fields for part in parts if len(fields := part.split(",")) >= _FIELDS]
    for index, (uuid, slots, memory, model, health, *_) in enumerate(rows):
        if memory.isdecimal() and slots.isdecimal():
            is_healthy = health.lower() in ("true", "t", "1")
            yield DivisibleDevice(name, uuid, uuid, GPU, index, model, int(memory), int(slots), is_healthy=is_healthy)


def list_shares(pod: Fields) -> Iterator[DevicePart]:
    """Iterate over the parts of devices that the containers of a pod hold, in their order."""
    names = [get_text(container, "name") for container in iterate_objects(pod, "spec", "containers")]
    for position, segment in enumerate(get_text(pod, "metadata", "annotations", IDS).split(";")):
        container = names[position] if position < len(names) else ""
        for part in segment.split(":"):
            fields = part.split(",")
            if len(fields) >= _HELD_FIELDS and fields[2].isdecimal() and fields[3].isdecimal():
                yield DevicePart(fields[0], int(fields[3]), int(fields[2]), container=container)


def list_requests(pod: Fields) -> list[PartRequest]:
    """List what each container asks for; empty for a pod that asks for no vGPU."""
    annotations = get_object(pod, "metadata", "annotations")
    mismatch = partial(_find_mismatch, {name: str(value) for name, value in annotations.items()})
    return [
        PartRequest(
            GPU, number, cores, memory or 0, percent, is_health_checked=False, is_alone_when_whole=True,
            find_mismatch=mismatch,
        )
        for number, memory, percent, cores in map(_read_amounts, iterate_objects(pod, "spec", "containers"))
        if number
    ]  # fmt: skip


def _read_amounts(container: Fields) -> tuple[int, int | None, int | None, int]:
    """Read number, MiB, percent of memory and cores; without MiB and percent it is a whole device's memory."""
    limits = get_object(container, "resources", "limits")
    number, memory, percent, cores = (read_amount(limits.get(name)) for name in (_NUMBER, _MEMORY, _PERCENT, _CORES))
    if number is None and memory is not None:
        number = 1
    if percent is None and not memory:
        percent = WHOLE_DEVICE
    return number or 0, memory, percent, cores or 0


def _find_mismatch(annotations: Mapping[str, str], device: DivisibleDevice) -> ReasonCode | None:
    """Find what the annotations of a pod exclude of a device."""
    use, no_use = _split(annotations, _USE_UUID), _split(annotations, _NO_USE_UUID)
    if (use and device.name not in use) or device.name in no_use:
        return ReasonCode.CARD_UUID_MISMATCH
    types, no_types = _split(annotations, USE_TYPE), _split(annotations, NO_USE_TYPE)
    if types and not _names_model(types, device.model):
        return ReasonCode.CARD_TYPE_MISMATCH
    # Volcano looks at the excluded models only where no models are named.
    return ReasonCode.CARD_TYPE_MISMATCH if not types and _names_model(no_types, device.model) else None


def _split(annotations: Mapping[str, str], name: str) -> list[str]:
    return [entry.strip() for entry in annotations.get(name, "").split(",") if entry.strip()]


def _names_model(words: Sequence[str], model: str) -> bool:
    return any(word.upper() in model.upper() for word in words)

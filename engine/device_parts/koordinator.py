"""Koordinator's devices: the object ``Device`` of each node, and the annotation that says what a pod holds of them.

Sources: ``apis/scheduling/v1alpha1/device_types.go``, ``apis/extension/device_share.go`` and the plugin DeviceShare of
2026-07. A GPU is known by its minor number. Resources of GPUs have been renamed: the last part of a name counts.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from engine.device_parts.divisible import WHOLE_DEVICE, DevicePart, DivisibleDevice, PartRequest, read_amount, read_mib
from engine.hami.annotations import GPU_COUNT
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

DEVICE: Final = "Device.scheduling.koordinator.sh"
"""Kind of the object, of the same name as its node."""
ALLOCATED: Final = "scheduling.koordinator.sh/device-allocated"
GPU: Final = "gpu"
_MODEL: Final = "node.koordinator.sh/gpu-model"
_DOMAIN: Final = "koordinator.sh/"
_CORE, _MEMORY, _RATIO, _SHARED = "gpu-core", "gpu-memory", "gpu-memory-ratio", "gpu.shared"
_PERCENT: Final = "koordinator.sh/gpu"
"""Compute and memory of GPUs together, in percent."""
_COUNTED: Final = (GPU_COUNT, "amd.com/gpu", "dcu.com/gpu")
_OTHERS: Final = ("rdma", "fpga")


def list_devices(device: Fields) -> Iterator[DivisibleDevice]:
    """Iterate over the devices of a node, all kinds of them."""
    node, model = get_text(device, "metadata", "name"), get_text(device, "metadata", "labels", _MODEL)
    for entry in iterate_objects(device, "spec", "devices"):
        kind, minor = get_text(entry, "type"), read_amount(entry.get("minor")) or 0
        numa = read_amount(get_object(entry, "topology").get("nodeID")) or 0
        yield DivisibleDevice(
            node,
            _name_device(kind, minor),
            f"{node}/{_name_device(kind, minor)}",
            kind,
            minor,
            model if kind == GPU else kind,
            read_mib(_pick(get_object(entry, "resources"), _MEMORY)) if kind == GPU else None,
            numa=numa,
            is_healthy=entry.get("health") is not False,
        )


def _name_device(kind: str, minor: int) -> str:
    return f"{kind}-{minor}"


def _pick(amounts: Fields, part: str) -> Any:
    """Pick the amount of the resource whose name ends with this part."""
    return next((amount for name, amount in amounts.items() if name.rpartition("/")[2] == part), None)


def list_shares(pod: Fields) -> Iterator[DevicePart]:
    """Iterate over the parts of devices that a pod holds; none of an annotation that can't be read."""
    try:
        allocated = orjson.loads(get_text(pod, "metadata", "annotations", ALLOCATED) or "{}")
    except orjson.JSONDecodeError:
        return
    for kind in allocated if isinstance(allocated, Mapping) else ():
        for entry in iterate_objects(allocated, kind):
            amounts = get_object(entry, "resources")
            cores = read_amount(_pick(amounts, _CORE if kind == GPU else kind)) or 0
            yield DevicePart(
                _name_device(kind, read_amount(entry.get("minor")) or 0),
                cores,
                read_mib(_pick(amounts, _MEMORY)),
                read_amount(_pick(amounts, _RATIO)),
            )


def list_requests(pod: Fields) -> list[PartRequest]:
    """List what a pod asks of GPUs and of other devices; empty for a pod that asks for none of them."""
    amounts = _sum_amounts(pod)
    gpus = _read_gpus(amounts)
    others = (_read_others(kind, amounts.get(f"{_DOMAIN}{kind}", 0)) for kind in _OTHERS)
    return [request for request in (gpus, *others) if request]


def _sum_amounts(pod: Fields) -> dict[str, int]:
    """Sum the requests of the containers, which Koordinator meets by the same devices."""
    sums: dict[str, int] = {}
    for container in iterate_objects(pod, "spec", "containers"):
        named = {**get_object(container, "resources", "limits"), **get_object(container, "resources", "requests")}
        for name, amount in named.items():
            sums[name] = sums.get(name, 0) + (read_amount(amount) or 0)
    return sums


def _read_gpus(amounts: Mapping[str, int]) -> PartRequest | None:
    """Read the request for GPUs: several are whole ones, or ``gpu.shared`` says how many the amounts are divided by."""
    percent = sum(amounts.get(name, 0) for name in _COUNTED) * WHOLE_DEVICE or amounts.get(_PERCENT, 0)
    core, ratio = percent or _pick(amounts, _CORE) or 0, percent or _pick(amounts, _RATIO)
    memory = _pick(amounts, _MEMORY)
    if not (core or ratio or memory):
        return None
    count = _pick(amounts, _SHARED) or (
        ratio // WHOLE_DEVICE if ratio and ratio > WHOLE_DEVICE and ratio % WHOLE_DEVICE == 0 else 1
    )
    memory_mib = 0 if ratio else (read_mib(memory) or 0) // count
    return PartRequest(GPU, count, core // count, memory_mib, ratio // count if ratio else None)


def _read_others(kind: str, amount: int) -> PartRequest | None:
    """Read the request for devices that are given in percent, or several of them as a whole."""
    count = amount // WHOLE_DEVICE if amount > WHOLE_DEVICE and amount % WHOLE_DEVICE == 0 else 1
    return PartRequest(kind, count, amount // count) if amount else None

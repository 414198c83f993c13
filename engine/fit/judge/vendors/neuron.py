"""AWS Neuron (HAMi's `awsneuron/device.go`): several devices are neighbours on the ring, one gives its cores.

Cores are a mask, a bit per core: 3 is both cores of a device.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude, find_slot_refusal, refuse_all
from engine.hami.vendor_registrations import NODE_TYPE

_BOTH: Final = 3
_GROUPS: Final = (1, 4, 8, 16)


def fit_neuron(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return _fit_several(devices, node_request) if node_request.request.count > 1 else _fit_one(devices, node_request)


def _fit_several(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    listed, count = devices[::-1], node_request.request.count
    start = next(
        (start for start in _list_starts(listed, count) if _are_free(listed[start : start + count], count)), None
    )
    if start is None:
        return refuse_all(devices, verdict_codes.NUMA_NOT_FIT)
    fit = ReferenceFit()
    for index in range(start, start + count):
        device = next((device for device in listed if device.index == index), None)
        if device:
            look = fit.look(device, verdict_codes.PICKED)
            fit.picks.append(Pick(device, device.total_memory, device.total_cores, None, look))
    return conclude(fit, devices, passed=True)


def _list_starts(listed: Sequence[DeviceState], count: int) -> Iterator[int]:
    """List where a run of devices may begin: anywhere on an Inferentia node, else at multiples of 4, 8 or 16."""
    kind = str(listed[0].extra.get(NODE_TYPE, "")) if listed else ""
    if "inf" in kind or "Inf" in kind:
        yield from range(len(listed))
    elif count in _GROUPS:
        yield from range(0, len(listed), count)


def _are_free(run: Sequence[DeviceState], count: int) -> bool:
    return len(run) == count and all(device.used_slots <= 0 and not device.gate for device in run)


def _fit_one(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    fit = ReferenceFit()
    for device in devices:
        refusal = _find_refusal(device, node_request)
        look = fit.look(device, refusal or verdict_codes.PICKED)
        if not refusal:
            fit.picks.append(Pick(device, 0, _mask(device.used_cores, node_request.raw.cores), None, look))
            break
    return conclude(fit, devices, passed=bool(fit.picks))


def _find_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    if code := find_slot_refusal(device, node_request):
        return code
    free = max(device.total_cores, 0).bit_count() - max(device.used_cores, 0).bit_count()
    return verdict_codes.INSUFFICIENT_CORE if free < node_request.raw.cores else 0


def _mask(used: int, cores: int) -> int:
    """Mask the cores to give: the first of a free device, else the other one."""
    return 1 if used == 0 and cores == 1 else _BOTH - used

"""AMD (HAMi's `amd/device.go`): memory in MiB, and a percentage of each device's own compute units."""

from collections.abc import Sequence

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude_by_count, find_slot_refusal, take_in_turn


def fit_amd(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return conclude_by_count(take_in_turn(devices, node_request, _find_refusal, _pick), devices, node_request)


def _find_refusal(device: DeviceState, node_request: NodeRequest) -> int:
    if code := find_slot_refusal(device, node_request):
        return code
    if device.total_memory - device.used_memory < _resolve_memory(device, node_request):
        return verdict_codes.INSUFFICIENT_MEMORY
    is_short = device.total_cores <= 0 or device.total_cores - device.used_cores < _resolve_cores(device, node_request)
    return verdict_codes.INSUFFICIENT_CORE if is_short else 0


def _pick(device: DeviceState, node_request: NodeRequest, look: int) -> Pick:
    return Pick(device, _resolve_memory(device, node_request), _resolve_cores(device, node_request), None, look)


def _resolve_memory(device: DeviceState, node_request: NodeRequest) -> int:
    """Resolve the MiB of this device; without memory in the request, all that it has."""
    memory = node_request.raw.memory_mib
    return device.total_memory if memory <= 0 < device.total_memory else memory


def _resolve_cores(device: DeviceState, node_request: NodeRequest) -> int:
    """Resolve the percentage into compute units of this device, at least one."""
    return min(max(device.total_cores * node_request.raw.cores // 100, 1), device.total_cores)

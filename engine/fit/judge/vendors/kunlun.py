"""Kunlun (HAMi's `kunlun/topo.go`): two wings of four devices, whole ones and their parts (XPU).

Which devices are taken depends on how many are free in each wing, and on the connections between the wings.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude, refuse_all
from engine.hami import vendor_annotations as keys
from engine.hami.vendors import Family

WING: Final = 4
_ACROSS: Final = ((0, 4), (1, 5), (2, 6), (3, 7))
_WITHIN: Final = (
    *((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
    *((4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7)),
)
_FOURS: Final = ((0, 1, 4, 5), (2, 3, 6, 7), (0, 2, 4, 6), (1, 3, 5, 7), (0, 3, 4, 7), (1, 2, 5, 6))
_ODD_ORDER: Final = (1, 3, 2, 4)

Free = Callable[[DeviceState], bool]


def fit_kunlun(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    listed = devices[::-1]
    accepted = {device.position for device in listed if _accepts_uuid(device, node_request)}
    is_part = node_request.vendor.family is Family.XPU
    fits = _fits_part if is_part else _fits_whole
    is_mutex = is_part and node_request.request.is_mutex

    def is_free(device: DeviceState) -> bool:
        return (
            device.position in accepted
            and not (is_mutex and device.used_slots > 0)
            and fits(device, node_request.raw.memory_mib)
        )

    chosen = choose_devices(listed, node_request.request.count, is_free)
    if not chosen:
        conflicts = sum(device.used_slots > 0 and fits(device, node_request.raw.memory_mib) for device in listed)
        if is_mutex and conflicts:
            return refuse_all(devices, verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT, conflicts)
        if len(accepted) < len(listed):
            return refuse_all(devices, verdict_codes.UUID_MISMATCH, len(listed) - len(accepted))
        return refuse_all(devices, verdict_codes.NUMA_NOT_FIT)
    fit = ReferenceFit()
    for index in chosen:
        device = next((device for device in listed if device.index == index), None)
        if device:
            memory, cores = (
                (node_request.raw.memory_mib, node_request.raw.cores)
                if is_part
                else (device.total_memory, device.total_cores)
            )
            fit.picks.append(Pick(device, memory, cores, None, fit.look(device, verdict_codes.PICKED)))
    return conclude(fit, devices, passed=True)


def _accepts_uuid(device: DeviceState, node_request: NodeRequest) -> bool:
    """Tell whether both pairs of lists that HAMi reads for Kunlun accept the device."""
    use, no_use = (node_request.texts.get(key, "") for key in (keys.XPU_USE_UUID, keys.XPU_NO_USE_UUID))
    return (
        device.accepts_uuid
        and (not use.strip() or device.uuid in map(str.strip, use.split(",")))
        and (not no_use.strip() or device.uuid not in map(str.strip, no_use.split(",")))
    )


def _fits_whole(device: DeviceState, _: int) -> bool:
    return device.used_slots == 0 and not device.gate


def _fits_part(device: DeviceState, memory_mib: int) -> bool:
    """Tell whether the device has room for a part: all parts of a device have one size."""
    if device.gate or memory_mib + device.used_memory > device.total_memory:
        return False
    return device.used_slots == 0 or device.used_memory // device.used_slots == memory_mib


def choose_devices(listed: Sequence[DeviceState], count: int, is_free: Free) -> Sequence[int]:
    """Choose the indices of the devices to take, in order; none where the wings do not give enough."""
    left, right = (sum(map(is_free, wing)) for wing in (listed[:WING], listed[WING:]))
    if count == 2 * WING:
        return tuple(range(count)) if left + right == count else ()
    if count not in (1, 2, WING):
        return ()
    if left >= count or right >= count:
        for slots in range(count, WING + 1):
            wanted = _ODD_ORDER[slots - 1] if count % 2 else slots
            # The wing with as few free devices as possible, so that the other one stays whole.
            if wanted in (left, right):
                start = 0 if left == wanted else WING
                return [device.index for device in listed[start : 2 * WING] if is_free(device)][:count]
    return _find_connected(listed, count, is_free)


def _find_connected(listed: Sequence[DeviceState], count: int, is_free: Free) -> Sequence[int]:
    """Find devices of both wings that are connected with each other."""
    free = [device.index for device in listed if is_free(device)]
    if count == 2:
        pairs = ((first, second) for first, second in product(free, free) if first != second)
        return next((pair for pair in pairs if pair in _ACROSS or pair[::-1] in _ACROSS), ())
    if count != WING or len(free) not in (4, 5, 6):
        return ()
    connected: Sequence[int] = ()
    for four in _FOURS:
        if set(four) <= set(free):
            remaining = set(free) - set(four)
            if len(free) < 6 or any(set(pair) <= remaining for pair in (*_ACROSS, *_WITHIN)):
                return four
            connected = four
    return connected

"""Enflame (HAMi's `enflame`): devices that are cut into profiles, and whole devices (GCU)."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, conclude_by_count, find_slot_refusal, refuse_all, take_in_turn
from engine.hami.vendor_registrations import LARGEST, PROFILES, parse_profile_size
from engine.hami.vendors import BY_SPECIFICATION


class DrsProfile(NamedTuple):
    """Slices of a device, memory in GiB, percent of its cores; id: Enflame's number of it."""

    slices: int
    memory_gib: int
    cores: int
    name: str
    id: str


def fit_drs(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    profile = _choose_profile(_list_profiles(devices), node_request)
    if profile is None:
        return refuse_all(devices, verdict_codes.MODE_NOT_FIT)
    memory_mib = profile.memory_gib * 1024

    def find_refusal(device: DeviceState, _: NodeRequest) -> int:
        if code := find_slot_refusal(device, node_request):
            return code
        if device.total_memory - device.used_memory < memory_mib:
            return verdict_codes.INSUFFICIENT_MEMORY
        is_short = device.total_cores > 0 and device.total_cores - device.used_cores < profile.cores
        return verdict_codes.INSUFFICIENT_CORE if is_short else 0

    def pick(device: DeviceState, _: NodeRequest, look: int) -> Pick:
        taken = Pick(device, memory_mib, profile.cores, None, look)
        return taken._replace(slots=profile.slices, profile=(profile.name, profile.id))

    return conclude_by_count(take_in_turn(devices, node_request, find_refusal, pick), devices, node_request)


def _list_profiles(devices: Sequence[DeviceState]) -> list[DrsProfile]:
    """List the profiles of all devices of the node, ascending."""
    largest = max((int(device.extra.get(LARGEST, 0)) for device in devices), default=0)
    profiles = {}
    for device in devices:
        for name, number in device.extra.get(PROFILES, ()):
            slices, memory = parse_profile_size(name)
            if slices > 0 < memory and largest > 0:
                profiles[name] = DrsProfile(slices, memory, ceil(slices * 100 / largest), name, number)
    return sorted(profiles.values(), key=lambda profile: profile[:2])


def _choose_profile(profiles: Sequence[DrsProfile], node_request: NodeRequest) -> DrsProfile | None:
    """Choose the profile with exactly the requested slices, or the smallest with enough memory and cores."""
    raw = node_request.raw
    if raw.memory_percentage != BY_SPECIFICATION:
        return next((profile for profile in profiles if profile.slices == raw.memory_mib), None)
    memory = _to_gib(raw.memory_mib, profiles[-1].memory_gib) if profiles else 0
    return next((profile for profile in profiles if profile.memory_gib >= memory and profile.cores >= raw.cores), None)


def _to_gib(amount: int, largest_gib: int) -> int:
    """Convert to GiB; an amount far above the largest profile is taken for MiB."""
    if amount <= 0:
        return 0
    return ceil(amount / 1024) if amount > largest_gib * 2 else amount


def fit_gcu(devices: Sequence[DeviceState], node_request: NodeRequest) -> ReferenceFit:
    return conclude_by_count(take_in_turn(devices, node_request, _find_refusal, _pick_whole), devices, node_request)


def _find_refusal(device: DeviceState, _: NodeRequest) -> int:
    return device.gate or (verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT if device.used_slots > 0 else 0)


def _pick_whole(device: DeviceState, node_request: NodeRequest, look: int) -> Pick:
    return Pick(device, node_request.raw.memory_mib, node_request.raw.cores, None, look)

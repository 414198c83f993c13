"""Enflame (HAMi's `enflame`): devices that are cut into profiles, and whole devices (GCU)."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import DeviceState, Pick, ReferenceFit
from engine.fit.judge.vendors.asking import NodeRequest, enough, refuse_all, slot_refusal, take_in_turn
from engine.hami.drs_registration import LARGEST, PROFILES, parse_profile_size
from engine.hami.requests import BY_SPECIFICATION


class DrsProfile(NamedTuple):
    """Slices of a device, memory in GiB, percent of its cores; id: Enflame's number of it."""

    slices: int
    memory_gib: int
    cores: int
    name: str
    id: str


def fit_drs(devices: Sequence[DeviceState], asked: NodeRequest) -> ReferenceFit:
    profile = _profile(_profiles(devices), asked)
    if profile is None:
        return refuse_all(devices, verdict_codes.MODE_NOT_FIT)
    memory_mib = profile.memory_gib * 1024

    def refusal(device: DeviceState, _: NodeRequest) -> int:
        if code := device.gate or slot_refusal(device, asked):
            return code
        if device.total_memory - device.used_memory < memory_mib:
            return verdict_codes.INSUFFICIENT_MEMORY
        is_short = device.total_cores > 0 and device.total_cores - device.used_cores < profile.cores
        return verdict_codes.INSUFFICIENT_CORE if is_short else 0

    def pick(device: DeviceState, _: NodeRequest, look: int) -> Pick:
        taken = Pick(device, memory_mib, profile.cores, None, look)
        return taken._replace(slots=profile.slices, profile=(profile.name, profile.id))

    return enough(take_in_turn(devices, asked, refusal, pick), devices, asked)


def _profiles(devices: Sequence[DeviceState]) -> list[DrsProfile]:
    """The profiles of all devices of the node, ascending."""
    largest = max((int(device.extra.get(LARGEST, 0)) for device in devices), default=0)
    found = {}
    for device in devices:
        for name, number in device.extra.get(PROFILES, ()):
            slices, memory = parse_profile_size(name)
            if slices > 0 < memory and largest > 0:
                found[name] = DrsProfile(slices, memory, ceil(slices * 100 / largest), name, number)
    return sorted(found.values(), key=lambda profile: profile[:2])


def _profile(profiles: Sequence[DrsProfile], asked: NodeRequest) -> DrsProfile | None:
    """The profile with so many slices, or the smallest with so much memory and cores."""
    raw = asked.raw
    if raw.memory_percentage != BY_SPECIFICATION:
        return next((profile for profile in profiles if profile.slices == raw.memory_mib), None)
    memory = _gib(raw.memory_mib, profiles[-1].memory_gib) if profiles else 0
    return next((profile for profile in profiles if profile.memory_gib >= memory and profile.cores >= raw.cores), None)


def _gib(amount: int, largest_gib: int) -> int:
    """GiB; an amount far above the largest profile is taken for MiB."""
    if amount <= 0:
        return 0
    return ceil(amount / 1024) if amount > largest_gib * 2 else amount


def fit_gcu(devices: Sequence[DeviceState], asked: NodeRequest) -> ReferenceFit:
    return enough(take_in_turn(devices, asked, _refusal, _whole), devices, asked)


def _refusal(device: DeviceState, _: NodeRequest) -> int:
    return device.gate or (verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT if device.used_slots > 0 else 0)


def _whole(device: DeviceState, asked: NodeRequest, look: int) -> Pick:
    return Pick(device, asked.raw.memory_mib, asked.raw.cores, None, look)

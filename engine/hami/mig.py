"""MIG: the profile that a request gets, and its placement on the device.

A profile (say `2g.10gb`) has a few fixed placements; two instances may not overlap. The rules are HAMi v2.10.0's: the
smallest profile with enough memory and a free placement; profiles of one and three slices are placed as high as
possible, the others as low as possible, so that large ones keep fitting.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Placement(NamedTuple):
    """Span of memory slices, `[start, start + size)`."""

    start: int = 0
    size: int = 0

    def overlaps(self, other: "Placement") -> bool:
        return self.start < other.start + other.size and other.start < self.start + self.size


class MigProfile(NamedTuple):
    """Size of instances: memory (MiB), cores (percent of the device) and possible placements."""

    name: str = ""
    memory_mib: int = 0
    cores: int = 0
    slices: int = 0
    placements: tuple[Placement, ...] = ()


class MigChoice(NamedTuple):
    """Instance that a request gets."""

    profile: MigProfile
    placement: Placement


def choose_instance(profiles: Iterable[MigProfile], memory_mib: int, taken: Iterable[Placement]) -> MigChoice | None:
    """Choose the smallest profile with enough memory and a placement that overlaps none of `taken`; None for none."""
    held = tuple(taken)
    enough = (profile for profile in profiles if profile.memory_mib >= memory_mib)
    # HAMi's order; Python's sort is stable, so profiles that are equal in both are tried in the order of the
    # registration.
    for profile in sorted(enough, key=lambda profile: (profile.memory_mib, profile.slices)):
        placement = _find_placement(profile, held)
        if placement is not None:
            return MigChoice(profile, placement)
    return None


def _find_placement(profile: MigProfile, held: tuple[Placement, ...]) -> Placement | None:
    # HAMi decides by the beginning of the name.
    prefers_high = profile.name.startswith(("1g", "3g"))
    for placement in sorted(profile.placements, key=lambda placement: placement.start, reverse=prefers_high):
        if not any(placement.overlaps(other) for other in held):
            return placement
    return None

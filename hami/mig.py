"""MIG cards: which profile a request gets, and where on the card it is placed.

A profile (say `2g.10gb`) may stand at a few fixed placements; two instances may not overlap. Rules as HAMi v2.10.0
applies them: the smallest profile that holds the memory asked for and still has a free placement; one- and
three-slice profiles are put as high as possible, the others as low as possible, so that big ones keep fitting.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """A span of memory slices, `[start, start + size)`."""

    start: int = 0
    size: int = 0

    def overlaps(self, other: "Placement") -> bool:
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One way to cut an instance: its memory (MiB), cores (percent of the card) and where it may stand."""

    name: str = ""
    memory_mib: int = 0
    cores: int = 0
    slices: int = 0
    placements: tuple[Placement, ...] = ()


@dataclass(frozen=True, slots=True)
class MigChoice:
    """The instance a request gets."""

    profile: MigProfile
    placement: Placement


def choose(profiles: Iterable[MigProfile], memory_mib: int, taken: Iterable[Placement]) -> MigChoice | None:
    """The smallest profile with at least `memory_mib` and a placement free of `taken`; None when there is none."""
    held = tuple(taken)
    enough = (profile for profile in profiles if profile.memory_mib >= memory_mib)
    for profile in sorted(enough, key=lambda profile: (profile.memory_mib, profile.slices)):
        placement = _free_placement(profile, held)
        if placement is not None:
            return MigChoice(profile, placement)
    return None


def _free_placement(profile: MigProfile, held: tuple[Placement, ...]) -> Placement | None:
    prefers_high = profile.name.startswith(("1g", "3g"))
    for placement in sorted(profile.placements, key=lambda at: at.start, reverse=prefers_high):
        if not any(placement.overlaps(other) for other in held):
            return placement
    return None

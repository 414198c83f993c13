"""Volumes that a claim without one can be bound to, by node."""

from collections.abc import Container

from engine.filters.selector_index import SelectorIndex
from engine.snapshot.selectors import Labels, NodeSelector, Requirement
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import PersistentVolume, VolumeClaim


class FreeVolumes:
    """The volumes of a cluster that are reserved for one claim or would do for it, the smallest first."""

    def __init__(self, snapshot: Snapshot, claim: VolumeClaim) -> None:
        volumes = [volume for volume in snapshot.volumes.values() if _suits(volume, claim)]
        volumes.sort(key=lambda volume: volume.capacity_nano)
        self._reserved = [volume for volume in volumes if volume.claim is not None]
        self._free = SelectorIndex(
            (volume, list_shared_requirements(volume.node_affinity)) for volume in volumes if volume.claim is None
        )

    def find(self, labels: Labels, chosen: Container[str]) -> PersistentVolume | None:
        """Return the volume for a node of these labels; chosen: names of volumes that other claims take.

        Where a volume is reserved for the claim, no other will do.
        """
        for volume in self._reserved:
            if volume.name not in chosen:
                return volume if _is_reachable(volume, labels) else None
        for volume in self._free.find_candidates(labels):
            if volume.name not in chosen and _is_reachable(volume, labels):
                return volume
        return None


def list_shared_requirements(affinity: NodeSelector | None) -> tuple[Requirement, ...]:
    """Return the requirements of a node selector that has one term, and () otherwise."""
    return affinity.terms[0].expressions if affinity is not None and len(affinity.terms) == 1 else ()


def _is_reachable(volume: PersistentVolume, labels: Labels) -> bool:
    return volume.node_affinity is None or volume.node_affinity.matches(labels)


def _suits(volume: PersistentVolume, claim: VolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim or has what it asks for, wherever it is."""
    if (
        volume.storage_class != claim.storage_class
        or volume.capacity_nano < (claim.request_nano or 0)
        or volume.volume_mode != claim.volume_mode
        or volume.attributes_class != claim.attributes_class
        or volume.is_deleted
    ):
        return False
    if volume.claim is not None:
        return volume.claim.names(claim)
    return (
        volume.phase == "Available"
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and set(claim.access_modes) <= set(volume.access_modes)
    )

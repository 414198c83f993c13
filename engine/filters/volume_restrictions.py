"""VolumeRestrictions: disks that only one pod may write, and claims that only one pod may use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import Disk

NAME: Final = "VolumeRestrictions"
_DISK_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNSCHEDULABLE, ("node(s) had no available disk",))
_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_CLAIM_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNSCHEDULABLE, (_IN_USE,))
_EXCLUSIVE: Final = frozenset(("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"))


@dataclass(frozen=True, slots=True)
class VolumeRestrictionCheck(NodeCheck):
    """Judges disks on one node, and the uses of the pod's ReadWriteOncePod claims in the whole cluster."""

    disks: tuple[Disk, ...]
    claims: frozenset[str]
    uses: int
    """Uses of the claims by pods on nodes."""
    unread: frozenset[str]

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node on which a pod has one of the disks, and every node while a claim is in use."""
        if self.disks and any(
            volume.disk and any(is_disk_conflict(disk, volume.disk) for disk in self.disks)
            for pod in node.pods
            for volume in pod.volumes
        ):
            return _DISK_REFUSAL
        if self.uses > 0:
            return _CLAIM_REFUSAL
        return Unjudged(NAME, self.unread) if self.unread else None

    def with_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "VolumeRestrictionCheck":
        """Count the uses of more pods."""
        del node
        return replace(self, uses=self.uses + self._count_uses(pods))

    def without_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "VolumeRestrictionCheck":
        """Count the uses of fewer pods."""
        del node
        return replace(self, uses=self.uses - self._count_uses(pods))

    def _count_uses(self, pods: Sequence[Pod]) -> int:
        return sum(1 for pod in pods for volume in pod.volumes if volume.is_named_claim and volume.claim in self.claims)


def is_disk_conflict(disk: Disk, other: Disk) -> bool:
    """Return whether two pods on one node cannot have both disks: only reading by both lets disks be shared."""
    if disk.source != other.source or disk.source not in _EXCLUSIVE:
        return False
    if disk.source == "rbd" and not (disk.pool == other.pool and disk.monitors & other.monitors):
        return False
    if disk.name != other.name:
        return False
    return disk.source == "awsElasticBlockStore" or not (disk.is_read_only and other.is_read_only)


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Find the pod's exclusive disks and claims; refuse the pod if one of its claims does not exist."""
    volumes = cycle.pod.volumes
    disks = tuple(volume.disk for volume in volumes if volume.disk and volume.disk.source in _EXCLUSIVE)
    names = [volume.claim for volume in volumes if volume.is_named_claim]
    if not disks and not names:
        return SKIPPED
    if names and (unread := cycle.snapshot.find_missing_kinds(kinds.VOLUME_CLAIM)):
        return Unjudged(NAME, unread)
    exclusive: set[str] = set()
    for name in names:
        claim = cycle.snapshot.find_volume_claim(cycle.pod.namespace, name)
        if claim is None:
            return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (f'persistentvolumeclaim "{name}" not found',))
        if "ReadWriteOncePod" in claim.access_modes:
            exclusive.add(name)
    return _prepare_check(cycle, disks, frozenset(exclusive))


def _prepare_check(cycle: SchedulingCycle, disks: tuple[Disk, ...], claims: frozenset[str]) -> Prepared:
    used = _collect_used_claims(cycle.snapshot, cycle.pod.namespace) & claims if claims else frozenset()
    unread = cycle.snapshot.find_missing_kinds(kinds.POD)
    if not disks and not used and not (claims and unread):
        return SKIPPED
    return VolumeRestrictionCheck(disks, claims, len(used), unread)


def _collect_used_claims(snapshot: Snapshot, namespace: str) -> frozenset[str]:
    """Name the claims of a namespace that pods on known nodes use."""
    return frozenset(
        volume.claim
        for node in snapshot.nodes.values()
        for pod in node.pods
        if pod.volumes and pod.namespace == namespace
        for volume in pod.volumes
        if volume.is_named_claim
    )

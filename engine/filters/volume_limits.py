"""NodeVolumeLimits: the number of volumes that a CSI driver can attach to a node."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.migrated_disks import MIGRATIONS, MIGRATIONS_BY_PLUGIN, find_counted_handle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import CsiNode, VolumeClaim

NAME: Final = "NodeVolumeLimits"
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNSCHEDULABLE, ("node(s) exceed max volume count",))

Handle = tuple[str, str]
"""Driver and identity of a volume."""


class _ForeignClaimError(Exception):
    """A claim with the name of a pod's own volume that was made for something else."""


@dataclass(frozen=True, slots=True)
class VolumeLimitCheck(NodeCheck):
    """Judges the volumes on a node together with the pod's."""

    snapshot: Snapshot
    added: frozenset[Handle]
    """Volumes of the pod that count."""

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node on which a driver would have too many volumes; a node without limits passes."""
        csi_node = self.snapshot.find_csi_node(node.node.name)
        if not self.added or csi_node is None or not csi_node.limits:
            return None
        try:
            in_use = {handle for pod in node.pods if pod.volumes for handle in iterate_handles(self.snapshot, pod)}
        except _ForeignClaimError as error:
            return PluginRefusal(NAME, StatusCode.ERROR, (str(error),))
        attached = self._collect_attached(node, in_use)
        return _REFUSAL if _is_exceeded(self.added - in_use, attached, csi_node) else None

    def _collect_attached(self, node: NodeInfo, in_use: Iterable[Handle]) -> set[Handle]:
        return {*in_use, *self._iterate_attached(node.node.name)}

    def count_attached(self, node: NodeInfo) -> Iterator[tuple[str, int, int]]:
        """Count the volumes on a node of each driver that the pod needs: driver, number, limit."""
        csi_node = self.snapshot.find_csi_node(node.node.name)
        in_use = (handle for pod in node.pods if pod.volumes for handle in iterate_handles(self.snapshot, pod))
        counts = Counter(driver for driver, _ in self._collect_attached(node, in_use))
        for driver in sorted({driver for driver, _ in self.added}):
            if csi_node and driver in csi_node.limits:
                yield driver, counts[driver], csi_node.limits[driver]

    def _iterate_attached(self, node: str) -> Iterator[Handle]:
        for attachment in self.snapshot.attachments.get(node, ()):
            volume = self.snapshot.find_volume(attachment.volume)
            if attachment.driver and volume and volume.csi_driver:
                yield attachment.driver, volume.csi_handle


def _is_exceeded(added: frozenset[Handle], attached: set[Handle], csi_node: CsiNode) -> bool:
    for driver in {driver for driver, _ in added}:
        limit = csi_node.limits.get(driver)
        if limit is None or len(added) + len(attached) <= limit:
            continue
        count = sum(1 for other, _ in added if other == driver) + sum(1 for other, _ in attached if other == driver)
        if count > limit:
            return True
    return False


def iterate_handles(snapshot: Snapshot, pod: Pod) -> Iterator[Handle]:
    """Yield the volumes of a pod that count on a node with CSI drivers."""
    for volume in pod.volumes:
        if volume.disk is not None:
            handle = find_counted_handle(volume.disk)
        else:
            claim = snapshot.find_volume_claim(pod.namespace, volume.claim)
            if claim and volume.is_ephemeral and not is_claim_of(claim, pod):
                raise _ForeignClaimError(report_foreign_claim(claim, pod))
            handle = _find_claim_handle(snapshot, claim) if claim else None
        if handle and handle[0] and handle[1]:
            yield handle


def is_claim_of(claim: VolumeClaim, pod: Pod) -> bool:
    """Return whether a claim was made for a pod."""
    return claim.controller is not None and claim.controller.uid == pod.uid


def report_foreign_claim(claim: VolumeClaim, pod: Pod) -> str:
    """Report a claim that was not made for the pod whose volume has its name."""
    return f"PVC {claim.namespace}/{claim.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def _find_claim_handle(snapshot: Snapshot, claim: VolumeClaim) -> Handle | None:
    volume = snapshot.find_volume(claim.volume) if claim.volume else None
    if volume is None:
        return _find_unbound_handle(snapshot, claim)
    if volume.csi_driver:
        return volume.csi_driver, volume.csi_handle
    zones = volume.labels.get("failure-domain.beta.kubernetes.io/zone") or volume.labels.get(
        "topology.kubernetes.io/zone", ""
    )
    return find_counted_handle(volume.disk, zones) if volume.disk else None


def _find_unbound_handle(snapshot: Snapshot, claim: VolumeClaim) -> Handle | None:
    """Count a claim without a volume as one more of the driver that will provision it."""
    storage_class = snapshot.find_storage_class(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return None
    identity = f"{claim.namespace}/{claim.name}"
    migration = MIGRATIONS_BY_PLUGIN.get(storage_class.provisioner)
    if migration is None:
        return storage_class.provisioner, identity
    return (migration.driver, identity) if migration.is_counted else None


_NEEDED: Final = (
    kinds.CSI_NODE,
    kinds.VOLUME_CLAIM,
    kinds.VOLUME,
    kinds.STORAGE_CLASS,
    kinds.VOLUME_ATTACHMENT,
    kinds.POD,
)


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Check only pods with claims or with disks that a CSI driver serves."""
    if not any(volume.disk is None or volume.disk.source in MIGRATIONS for volume in cycle.pod.volumes):
        return SKIPPED
    if unread := cycle.snapshot.find_missing_kinds(*_NEEDED):
        return Unjudged(NAME, unread)
    try:
        added = frozenset(iterate_handles(cycle.snapshot, cycle.pod))
    except _ForeignClaimError:
        # VolumeBinding refuses the pod before any node is looked at.
        added = frozenset()
    return VolumeLimitCheck(cycle.snapshot, added)

"""VolumeBinding: volumes of the pod's claims that a node can reach, and volumes that can still be bound or made."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.free_volumes import FreeVolumes
from engine.filters.migrated_disks import derive_affinity
from engine.filters.selector_index import SelectorIndex
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.filters.volume_limits import is_claim_of, report_foreign_claim
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.quantity import NANO
from engine.snapshot.selectors import Labels
from engine.snapshot.snapshot import Snapshot
from engine.snapshot.volumes import PodVolume, StorageCapacity, StorageClass, VolumeClaim

NAME: Final = "VolumeBinding"
NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
OLD_NODE_CONFLICT: Final = "node(s) had volume node affinity conflict"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
NO_BOUND_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_NO_PROVISIONER: Final = frozenset(("", "kubernetes.io/no-provisioner"))


_NO_REASON: Final = frozenset((None,))


@dataclass(frozen=True, slots=True)
class DelayedClaim:
    """A claim without a volume whose class waits for the pod, with what could become its volume."""

    claim: VolumeClaim
    storage_class: StorageClass
    free: FreeVolumes
    capacities: SelectorIndex[StorageCapacity] | None
    """Capacities that are large enough, of a driver that tracks them; None for other drivers."""

    def judge_provisioning(self, labels: Labels) -> str | None:
        """Return why no volume can be made for a node of these labels."""
        if self.storage_class.provisioner in _NO_PROVISIONER or not allows_topology(self.storage_class, labels):
            return NO_VOLUME
        if self.capacities is None:
            return None
        is_enough = any(capacity.topology.matches(labels) for capacity in self.capacities.find_candidates(labels))
        return None if is_enough else NO_SPACE


@dataclass(frozen=True, slots=True)
class VolumeBindingCheck(NodeCheck):
    """Judges whether a node can have all volumes of the pod."""

    snapshot: Snapshot
    bound: tuple[VolumeClaim, ...]
    delayed: tuple[DelayedClaim, ...]
    """Smallest request first, as kube-scheduler looks for volumes."""
    conflict_text: str

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node with every reason that holds, in kube-scheduler's order."""
        reasons = {
            self._judge_bound(node) if self.bound else None,
            self._judge_delayed(node) if self.delayed else None,
        }
        if reasons == _NO_REASON:
            return None
        order = (self.conflict_text, NO_VOLUME, NO_SPACE, NO_BOUND_VOLUME)
        ordered = tuple(reason for reason in order if reason in reasons)
        return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ordered) if ordered else None

    def _judge_bound(self, node: NodeInfo) -> str | None:
        csi_node = self.snapshot.find_csi_node(node.node.name)
        for claim in self.bound:
            volume = self.snapshot.find_volume(claim.volume)
            if volume is None:
                return NO_BOUND_VOLUME
            affinity = derive_affinity(volume, csi_node)
            if affinity is not None and not affinity.matches(node.node.labels):
                return self.conflict_text
        return None

    def _judge_delayed(self, node: NodeInfo) -> str | None:
        """Find a volume or make one for every claim; a claim with a node already chosen is made there only."""
        name, labels = node.node.name, node.node.labels
        missing: list[DelayedClaim] = []
        for delayed in self.delayed:
            if delayed.claim.selected_node is not None:
                if delayed.claim.selected_node != name:
                    return NO_VOLUME
                missing.append(delayed)
        chosen: set[str] = set()
        for delayed in self.delayed:
            if delayed.claim.selected_node is None:
                volume = delayed.free.find(labels, chosen)
                if volume is None:
                    missing.append(delayed)
                else:
                    chosen.add(volume.name)
        for delayed in missing:
            if reason := delayed.judge_provisioning(labels):
                return reason
        return None


def allows_topology(storage_class: StorageClass, labels: Labels) -> bool:
    """Return whether volumes of a class may be made for a node; without terms they may anywhere."""
    if not storage_class.topologies:
        return True
    return any(term and all(labels.get(key) in values for key, values in term) for term in storage_class.topologies)


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Sort the pod's claims; refuse the pod if one cannot be used or is to be bound without it."""
    snapshot, pod = cycle.snapshot, cycle.pod
    volumes = [volume for volume in pod.volumes if volume.disk is None]
    if not volumes:
        return SKIPPED
    if unread := snapshot.find_missing_kinds(kinds.VOLUME_CLAIM):
        return Unjudged(NAME, unread)
    claims: list[VolumeClaim] = []
    for volume in volumes:
        claim = snapshot.find_volume_claim(pod.namespace, volume.claim)
        if problem := _find_problem(pod, volume, claim):
            return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (problem,))
        if claim:
            claims.append(claim)
    return _sort_claims(cycle, claims)


def _find_problem(pod: Pod, volume: PodVolume, claim: VolumeClaim | None) -> str | None:
    if claim is None:
        if volume.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{volume.claim}"'
        return f'persistentvolumeclaim "{volume.claim}" not found'
    if claim.phase == "Lost":
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
    if claim.is_deleted:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if volume.is_ephemeral and not is_claim_of(claim, pod):
        return report_foreign_claim(claim, pod)
    return None


def _sort_claims(cycle: SchedulingCycle, claims: list[VolumeClaim]) -> Prepared:
    snapshot = cycle.snapshot
    unbound = [claim for claim in claims if not claim.is_bound]
    needed = [kinds.VOLUME]
    if unbound:
        needed += [kinds.STORAGE_CLASS, kinds.CSI_DRIVER, kinds.STORAGE_CAPACITY]
    if unread := snapshot.find_missing_kinds(*needed):
        return Unjudged(NAME, unread)
    delayed = [
        _prepare_delayed(snapshot, claim) for claim in sorted(unbound, key=lambda claim: claim.request_nano or 0)
    ]
    if None in delayed:
        return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (_UNBOUND,))
    text = OLD_NODE_CONFLICT if cycle.release.has_volume_conflict_text else NODE_CONFLICT
    bound = tuple(claim for claim in claims if claim.is_bound)
    return VolumeBindingCheck(snapshot, bound, tuple(filter(None, delayed)), text)


def _prepare_delayed(snapshot: Snapshot, claim: VolumeClaim) -> DelayedClaim | None:
    """Look up what could become the volume of a claim; None if its class does not wait for the pod."""
    storage_class = snapshot.find_storage_class(claim.storage_class) if claim.storage_class else None
    if claim.volume or storage_class is None or storage_class.binding_mode != "WaitForFirstConsumer":
        return None
    return DelayedClaim(
        claim, storage_class, FreeVolumes(snapshot, claim), _find_capacities(snapshot, storage_class, claim)
    )


def _find_capacities(
    snapshot: Snapshot, storage_class: StorageClass, claim: VolumeClaim
) -> SelectorIndex[StorageCapacity] | None:
    driver = snapshot.find_csi_driver(storage_class.provisioner)
    if claim.request_nano is None or driver is None or not driver.tracks_capacity:
        return None
    size = -(-claim.request_nano // NANO)
    return SelectorIndex(
        (capacity, capacity.topology.requirements or ())
        for capacity in snapshot.storage_capacities.values()
        if capacity.storage_class == storage_class.name
        and capacity.limit_bytes is not None
        and capacity.limit_bytes >= size
    )

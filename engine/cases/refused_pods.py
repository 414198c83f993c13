"""A pod that its scheduler refused, judged on the objects of its cluster: the reason of each node, and of its devices.

Only refused nodes have a verdict here. A node that nothing refuses by the objects is named apart: another rule of the
scheduler kept the pod from it, or the objects have changed since.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from engine.claims.equal_nodes import NodeExplainer
from engine.claims.explanation import ExplainedDevice, ExplainedNode, ExplainedRequest, PooledDevice
from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import INVALID_POOLS, NO_DEVICES, ClaimsJudge
from engine.claims.judgement import DeviceReason
from engine.claims.pod_claims import ClaimRejectedError, collect_claims
from engine.claims.slices import DeviceId, SliceDevice
from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.judged_steps import sum_by_obstacle
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.tree import rank_obstacles
from engine.filters import dynamic_resources
from engine.filters.judge import compose_outside_reason
from engine.filters.judgement import Judgement, count_reasons
from engine.filters.release import LATEST, SchedulerRelease
from engine.judging import judge_pod
from engine.simulation.device_parts import PartsRefused, refuse_parts
from engine.simulation.held_claims import hold_existing_claims
from engine.simulation.kai_shares import NO_DEVICES as NO_GPUS
from engine.simulation.kai_shares import SharesRefused, asks_kai_share, hold_share, refuse_shares
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, RejectedObject
from engine.snapshot.nodes import Node
from engine.snapshot.reading import change_snapshot
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_object
from schemas.json_types import Json

_DEVICE_KINDS: Final = (kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS, kinds.RESOURCE_CLAIM, kinds.DEVICE_TAINT_RULE)
Agreement = Literal["equal", "different", "not compared"]
MAX_EXPLAINED: Final = 100
"""Limit of the nodes whose devices are explained, equal ones counted once; others have kube-scheduler's words only."""


MAX_PLACED_VERDICTS: Final = 100_000
"""Limit of the verdicts on nodes for the pods that are placed before another one."""


class ClusterToJudge(NamedTuple):
    """Objects of one moment, and the release of the cluster's scheduler."""

    snapshot: Snapshot
    inventory: Inventory
    """Devices and claims of the snapshot."""
    release: SchedulerRelease


class UnsuitableDevice(NamedTuple):
    """A device that a request cannot get."""

    id: DeviceId
    device: SliceDevice
    reason: DeviceReason
    is_held: bool
    """True if claims hold it, alone or together."""


@dataclass(frozen=True, slots=True)
class DeviceShortage:
    """The devices of a node for the request of a claim that the node cannot meet."""

    claim: str
    request: str
    class_name: str
    wanted: int | None
    """Number of devices; None for every device that fits."""
    devices: tuple[UnsuitableDevice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RefusedPod:
    """Verdicts on a refused pod by the objects of its cluster."""

    total: int
    """Nodes of the cluster."""
    reasons: Mapping[str, tuple[str, ...]]
    """By refused node, kube-scheduler's words."""
    shortages: Mapping[str, DeviceShortage]
    """By refused node, the devices that do not do; for some of the nodes that lack devices of a claim."""
    shares: SharesRefused | None
    """Nodes that have no device for the pod's part of one, as KAI gives it; None without any."""
    passing: tuple[str, ...]
    """Nodes that nothing refuses."""
    counts: Mapping[str, int]
    """Nodes by reason, as kube-scheduler counts them."""
    error: str
    """Words of a refusal before any node is looked at; empty otherwise."""
    missing_kinds: frozenset[str]
    """Kinds (`engine.snapshot.kinds`) without which some verdict is open."""
    obstacle: FoundObstacle | None
    """Main obstacle; None if a node takes the pod, or if no node was looked at."""

    def is_counted_by(self, counts: Mapping[str, int]) -> bool:
        """Tell whether the scheduler's counts are those of these verdicts.

        KAI does not count the nodes whose devices have too little memory left for ``gpu-memory``, and from v0.17 on it
        counts a node with devices that are too small also under GPUs if the share is more than all of them together.
        """
        theirs = sum_by_obstacle(counts)
        if self.shares is None or not self.shares.share.memory_mib:
            return theirs == sum_by_obstacle(self.counts)
        counted = {reason: count for reason, count in self.counts.items() if reason != NO_GPUS}
        doubled = self.shares.count_beyond_all()
        return theirs in (
            sum_by_obstacle(counted),
            sum_by_obstacle({**counted, NO_GPUS: doubled} if doubled else counted),
        )


def collect_cluster(
    snapshot: Snapshot, release: SchedulerRelease = LATEST, before: ClusterToJudge | None = None
) -> ClusterToJudge:
    """Collect what pods are judged on; ``before``: the same cluster earlier, of which unchanged devices are reused."""
    if before and before.release == release and _has_same_devices(snapshot, before.snapshot):
        return ClusterToJudge(snapshot, before.inventory, release)
    previous = before.inventory if before else None
    return ClusterToJudge(snapshot, read_inventory(snapshot, select_gates(release), previous=previous), release)


def _has_same_devices(snapshot: Snapshot, before: Snapshot) -> bool:
    is_same = all(snapshot.get_table(kind) is before.get_table(kind) for kind in _DEVICE_KINDS)
    return is_same and snapshot.unread == before.unread


def assume_pods(cluster: ClusterToJudge, pods: Sequence[Json]) -> ClusterToJudge:
    """Place pods one after the other, each on the first node that takes it; those that fit nowhere are left out.

    Of too many pods for the size of the cluster the rest is left out.
    """
    for pod in pods[: MAX_PLACED_VERDICTS // max(1, len(cluster.snapshot.nodes))]:
        judgement = judge_pod(cluster.snapshot, pod, release=cluster.release, inventory=cluster.inventory)
        if isinstance(judgement, RejectedObject):
            continue
        shares = refuse_shares(cluster.snapshot, pod, judgement.fitting, judgement.total)
        node = next((name for name in judgement.fitting if not shares or name not in shares.nodes), "")
        if node:
            cluster = _assume_pod(cluster, pod, node)
    return cluster


def _assume_pod(cluster: ClusterToJudge, pod: Json, node: str) -> ClusterToJudge:
    """Assume a pod on a node that takes it, with the devices of its claims."""
    snapshot = cluster.snapshot
    status = {**get_object(pod, "status"), "phase": "Running"}
    placed = {**pod, "spec": {**get_object(pod, "spec"), "nodeName": node}, "status": status}
    pods = hold_share(snapshot.nodes[node], placed) if asks_kai_share(placed) else [placed]
    claims = hold_existing_claims(snapshot, cluster.inventory, pod, node)
    return collect_cluster(change_snapshot(snapshot, [*pods, *claims]), cluster.release, cluster)


def compare_counts(judged: RefusedPod, counts: Mapping[str, int], message: str) -> Agreement:
    """Compare verdicts with the scheduler's counts; without counts, its words about the pod with the judged ones."""
    if judged.missing_kinds:
        return "not compared"
    if judged.shares and judged.shares.share.memory_mib and not counts:
        return "not compared"
    is_equal = judged.error in message if judged.error else judged.is_counted_by(counts)
    return "equal" if is_equal and (counts or judged.error) else "different"


def judge_refused_pod(
    cluster: ClusterToJudge, pod: Mapping[str, Any], now: datetime | None = None
) -> RefusedPod | None:
    """Judge a pod that waits; None for a malformed one, which no API server stores."""
    judgement = judge_pod(
        cluster.snapshot, pod, release=cluster.release, inventory=cluster.inventory, now=now, alone=True
    )
    if isinstance(judgement, RejectedObject):
        return None
    shares = refuse_shares(cluster.snapshot, pod, judgement.fitting, judgement.total)
    devices = None if shares else refuse_parts(cluster.snapshot, pod, judgement.fitting, judgement.total)
    parts = shares or devices
    refused = {**judgement.refused, **(parts.nodes if parts else {})}
    outside_words = compose_outside_reason(cluster.release)
    outside = dict.fromkeys(judgement.outside, (outside_words,))
    reasons = {name: refusal.reasons for name, refusal in refused.items()} | outside
    before_nodes = judgement.prefilter or next(iter(judgement.pre_enqueue), None)
    passing = tuple(name for name in judgement.fitting if name not in refused)
    return RefusedPod(
        total=judgement.total,
        reasons=reasons,
        shortages=dict(_iterate_shortages(cluster, judgement)),
        shares=shares,
        passing=passing,
        counts=count_reasons(refused, len(outside), compose_outside_reason(cluster.release))
        if parts
        else judgement.counts,
        error=", ".join(before_nodes.reasons) if before_nodes else "",
        missing_kinds=frozenset(_iterate_missing_kinds(judgement)),
        obstacle=None if passing or before_nodes else _find_obstacle(cluster, judgement, parts),
    )


def _find_obstacle(
    cluster: ClusterToJudge, judgement: Judgement, parts: SharesRefused | PartsRefused | None
) -> FoundObstacle | None:
    obstacles = derive_judged_obstacles(
        cluster.snapshot, judgement, release=cluster.release, inventory=cluster.inventory
    )
    return next(iter(rank_obstacles([*obstacles, *([parts.describe()] if parts else [])])), None)


def _iterate_missing_kinds(judgement: Judgement) -> Iterator[str]:
    for unjudged in (*judgement.unjudged, *(cause for causes in judgement.undecided.values() for cause in causes)):
        yield from unjudged.kinds


def _iterate_shortages(cluster: ClusterToJudge, judgement: Judgement) -> Iterator[tuple[str, DeviceShortage]]:
    """Iterate over nodes that lack devices of a claim, with the devices of the first request that they cannot meet."""
    nodes = [
        name
        for name, refusal in judgement.refused.items()
        if refusal.plugin == dynamic_resources.NAME and refusal.reasons[0] in (NO_DEVICES, INVALID_POOLS)
    ]
    finder = _create_finder(cluster.inventory, judgement) if nodes else None
    if finder is None:
        return
    for name in nodes:
        if shortage := finder.find(cluster.snapshot.nodes[name].node):
            yield name, shortage


def _create_finder(inventory: Inventory, judgement: Judgement) -> "_ShortageFinder | None":
    try:
        return _ShortageFinder(ClaimsJudge(inventory, collect_claims(inventory, judgement.pod, judgement.request)))
    except (ClaimRejectedError, FieldError):
        return None


class _ShortageFinder:
    """Finds the requests that nodes cannot meet, of equal nodes once."""

    def __init__(self, judge: ClaimsJudge) -> None:
        self._explainer = NodeExplainer(judge, MAX_EXPLAINED)
        self._allocated = judge.inventory.allocated
        self._unmet: dict[str, ExplainedRequest | None] = {}

    def find(self, node: Node) -> DeviceShortage | None:
        """Find the first request that a node cannot meet; None if there is none, or none was explained."""
        node_devices = self._explainer.explain(node)
        unmet = self._find_unmet(node_devices.explained) if node_devices else None
        if node_devices is None or unmet is None:
            return None
        devices = zip(node_devices.devices, unmet.devices, strict=False)
        request = unmet.request
        return DeviceShortage(
            unmet.claim,
            request.full_name,
            request.class_name,
            unmet.wanted,
            tuple(self._build_device(pooled, explained) for pooled, explained in devices),
        )

    def _find_unmet(self, explained: ExplainedNode) -> ExplainedRequest | None:
        if explained.node not in self._unmet:
            self._unmet[explained.node] = next(
                (
                    request
                    for request in explained.requests
                    if request.devices and all(device.findings for device in request.devices)
                ),
                None,
            )
        return self._unmet[explained.node]

    def _build_device(self, pooled: PooledDevice, explained: ExplainedDevice) -> UnsuitableDevice:
        is_held = self._allocated.is_allocated(pooled.id)
        return UnsuitableDevice(pooled.id, pooled.device, explained.findings[0].reason, is_held)

"""The drain of a node as a plan: each of its pods judged on the rest of the cluster, one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from engine.capacity.releases import ending_pod
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.fit.devices.pod_usage import PodUse, has_ended
from engine.fit.manifests import ManifestError
from engine.simulation.answer import diagnose_verdict
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import PodPlacer, placing_pods
from engine.simulation.proved_changes import ProvedChanges
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodRejectedError, PodVerdict, judge_simulated
from engine.simulation.workloads import read_workloads
from engine.snapshot.reading import change_snapshot
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.answers.capacity import DrainPlan, MovedPod
from schemas.answers.diagnosis import InBothLanguages
from schemas.json_types import Json

_MIRROR: Final = "kubernetes.io/config.mirror"
_PATH: Final = Path("the pod")
_STATES: Final[Mapping[PodOutcome, Literal["moves", "waits", "open"]]] = {
    PodOutcome.FITS: "moves",
    PodOutcome.REFUSED: "waits",
    PodOutcome.OPEN: "open",
}


class NodeMissingError(ValueError):
    """Node that the cluster does not have; the text is its name."""


def plan_drain(cluster: SimulationCluster, node: str, setting: SimulationSetting) -> DrainPlan:
    """Plan the drain of a node: where each of its pods goes, and which would wait. Raises `NodeMissingError`."""
    objects = cluster.get_nodes()
    if node not in objects:
        raise NodeMissingError(node)
    present = _list_pods(cluster, node)
    leaving = sorted((pod for pod in present if not _is_left(pod)), key=lambda pod: _rank(cluster, pod))
    uses = {uid: cluster.columns.get_pod_use(uid) for pod in leaving if (uid := get_text(pod, "metadata", "uid"))}
    with _without_pods(cluster, objects[node], leaving) as emptied, placing_pods(emptied) as placer:
        pods = [_move(placer, pod, uses.get(get_text(pod, "metadata", "uid")), setting) for pod in leaving]
    moves = sum(pod.state == "moves" for pod in pods)
    return DrainPlan(
        node=node,
        sentence=_write_sentence(node, len(pods), moves),
        moves=moves,
        waits=len(pods) - moves,
        pods=pods,
        remaining=len(present) - len(leaving),
    )


def _write_sentence(node: str, pods: int, moves: int) -> InBothLanguages:
    if not pods:
        return write_phrase("drain_none", node=node)
    name = "drain_all" if moves == pods else "drain_some"
    return write_phrase(name, node=node, moves=moves, waits=pods - moves)


def _list_pods(cluster: SimulationCluster, node: str) -> list[Json]:
    return [pod for pod in cluster.list_kind("Pod") if get_text(pod, "spec", "nodeName") == node and not has_ended(pod)]


def _is_left(pod: Mapping[str, Any]) -> bool:
    """Tell whether a drain leaves the pod: its DaemonSet would make it again at once, or the kubelet runs it."""
    owners = iterate_objects(pod, "metadata", "ownerReferences")
    is_daemon = any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
    return is_daemon or _MIRROR in get_object(pod, "metadata", "annotations")


def _rank(cluster: SimulationCluster, pod: Mapping[str, Any]) -> tuple[int, int, str, str]:
    """Rank as the scheduler's queue would (priority), then those that are hardest to place."""
    use = cluster.columns.get_pod_use(get_text(pod, "metadata", "uid"))
    priority = get_object(pod, "spec").get("priority")
    devices = len(use.by_uuid) if use else 0
    number = priority if isinstance(priority, int) else 0
    return -number, -devices, get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")


@contextmanager
def _without_pods(
    cluster: SimulationCluster, node: Mapping[str, Any], pods: Sequence[Json]
) -> Iterator[SimulationCluster]:
    """Cluster in which the node is cordoned and these pods have left it; its columns count them again afterwards."""
    keys = [("Pod", get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")) for pod in pods]
    cordoned = {**node, "spec": {**get_object(node, "spec"), "unschedulable": True}}
    emptied = replace(cluster, snapshot=change_snapshot(cluster.snapshot, [cordoned], keys))
    with ExitStack() as ended:
        for pod in pods:
            ended.enter_context(ending_pod(cluster.columns, get_text(pod, "metadata", "uid")))
        yield emptied


def _move(placer: PodPlacer, pod: Json, use: PodUse | None, setting: SimulationSetting) -> MovedPod:
    owner = next((owner for owner in iterate_objects(pod, "metadata", "ownerReferences")), {})
    uuids = sorted(use.by_uuid) if use else []
    verdict, reason = None, None
    try:
        (template,) = read_workloads(orjson.dumps(pod), _PATH)
        verdict = judge_simulated(placer.cluster, template.pod, setting.identity, setting.policy, setting.now)
    except (ManifestError, PodRejectedError) as error:
        reason = InBothLanguages(en=str(error), zh=str(error))
    node = None
    if verdict and verdict.outcome is PodOutcome.FITS:
        placer.bind(verdict)
        node = verdict.node or verdict.fitting[0]
    elif verdict:
        reason = _explain(verdict, setting)
    return MovedPod(
        namespace=get_text(pod, "metadata", "namespace"),
        name=get_text(pod, "metadata", "name"),
        workload=f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}" if owner else "",
        devices=len(uuids),
        uuids=uuids,
        node=node,
        state=_STATES[verdict.outcome] if verdict else "open",
        reason=reason,
    )


def _explain(verdict: PodVerdict, setting: SimulationSetting) -> InBothLanguages | None:
    if verdict.outcome is PodOutcome.OPEN:
        return write_phrase("note_unread", kinds=shorten_list(sorted(verdict.unread)))
    diagnosis = diagnose_verdict(verdict, ProvedChanges(), setting.cluster_name, setting.now)
    return diagnosis.sentence if diagnosis else None

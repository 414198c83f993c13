"""Pods that leave their node: who may be evicted, in which order, and where each is placed again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from engine.capacity.budgets import Budgets
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.fit.manifests import ManifestError
from engine.simulation.answer import diagnose_verdict
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import PodPlacer
from engine.simulation.proved_changes import ProvedChanges
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodRejectedError, PodVerdict, judge_simulated
from engine.simulation.workloads import read_workloads
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.answers.capacity import MovedPod
from schemas.answers.diagnosis import InBothLanguages
from schemas.json_types import Json

_MIRROR: Final = "kubernetes.io/config.mirror"
_PATH: Final = Path("the pod")
_STATES: Final[Mapping[PodOutcome, Literal["moves", "waits", "open"]]] = {
    PodOutcome.FITS: "moves",
    PodOutcome.REFUSED: "waits",
    PodOutcome.OPEN: "open",
}


def list_pods_on(cluster: SimulationCluster, node: str) -> list[Json]:
    """List the objects of the pods on a node that have not ended."""
    info = cluster.snapshot.nodes.get(node)
    return [pod.object for pod in info.pods] if info else []


def name_pod(pod: Mapping[str, Any]) -> str:
    """Name a pod as NAMESPACE/NAME."""
    return f"{get_text(pod, 'metadata', 'namespace')}/{get_text(pod, 'metadata', 'name')}"


def build_cordoned(node: Json) -> Json:
    """Build the object of a node that takes no further pods."""
    return {**node, "spec": {**get_object(node, "spec"), "unschedulable": True}}


def is_left_by_drain(pod: Mapping[str, Any]) -> bool:
    """Tell whether a drain leaves the pod: its DaemonSet would make it again at once, or the kubelet runs it."""
    owner = find_owner(pod)
    return get_text(owner, "kind") == "DaemonSet" or _MIRROR in get_object(pod, "metadata", "annotations")


def find_owner(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the controller that makes the pod again; empty where nothing does."""
    owners = iterate_objects(pod, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller")), {})


def rank_pod(cluster: SimulationCluster, pod: Mapping[str, Any]) -> tuple[int, int, str, str]:
    """Rank as the scheduler's queue would (priority), then those that are hardest to place."""
    priority = get_object(pod, "spec").get("priority")
    number = priority if isinstance(priority, int) else 0
    namespace, name = (get_text(pod, "metadata", field) for field in ("namespace", "name"))
    return -number, -count_devices(cluster, pod), namespace, name


def count_devices(cluster: SimulationCluster, pod: Mapping[str, Any]) -> int:
    """Count the devices that a pod holds."""
    use = cluster.columns.get_pod_use(get_text(pod, "metadata", "uid"))
    return len(use.by_uuid) if use else 0


def describe_shape(pod: Json) -> bytes:
    """Describe what a scheduler reads of a pod, but its name."""
    metadata = get_object(pod, "metadata")
    fields = [metadata.get(name) for name in ("namespace", "labels", "annotations")]
    return orjson.dumps([*fields, pod.get("spec")], option=orjson.OPT_SORT_KEYS)


def move_pod(placer: PodPlacer, pod: Json, budgets: Budgets, setting: SimulationSetting) -> MovedPod:
    """Evict a pod if its budget allows it, and place it again on the nodes that take pods."""
    use = placer.cluster.columns.get_pod_use(get_text(pod, "metadata", "uid"))
    owner, uuids = find_owner(pod), sorted(use.by_uuid) if use else []
    moved = MovedPod(
        namespace=get_text(pod, "metadata", "namespace"),
        name=get_text(pod, "metadata", "name"),
        workload=f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}" if owner else "",
        devices=len(uuids),
        uuids=uuids,
        budgets=[str(budget) for budget in budgets.select(pod)],
        node=None,
        state="open",
        reason=None,
    )
    if refusal := budgets.refuse(pod):
        return moved.model_copy(update={"state": "blocked", "reason": refusal})
    placer.end(pod)
    moved = moved.model_copy(update=_try_placing_again(placer, pod, setting))
    budgets.evict(pod, is_replaced=moved.state == "moves" and bool(owner))
    return moved


def _try_placing_again(placer: PodPlacer, pod: Json, setting: SimulationSetting) -> dict[str, Any]:
    """Place a pod as its owner makes it again; returns its node, its state and the reason why it waits."""
    try:
        verdict = judge_again(placer.cluster, pod, setting, explains=False)
        if verdict.outcome is not PodOutcome.FITS:
            verdict = judge_again(placer.cluster, pod, setting)
    except (ManifestError, PodRejectedError) as error:
        return {"reason": InBothLanguages(en=str(error), zh=str(error))}
    state = _STATES[verdict.outcome]
    if state != "moves":
        return {"state": state, "reason": explain_wait(verdict, setting)}
    placer.bind(verdict)
    return {"state": state, "node": verdict.node or verdict.fitting[0]}


def read_written(pod: Json) -> Json:
    """Read a pod as its owner wrote it. Raises `ManifestError`."""
    (template,) = read_workloads(orjson.dumps(pod), _PATH)
    return template.pod


def judge_again(
    cluster: SimulationCluster, pod: Json, setting: SimulationSetting, *, explains: bool = True
) -> PodVerdict:
    """Judge a pod as its owner wrote it. Raises `ManifestError`, `PodRejectedError`."""
    written = read_written(pod)
    return judge_simulated(cluster, written, setting.identity, setting.policy, setting.now, explains=explains)


def explain_wait(verdict: PodVerdict, setting: SimulationSetting) -> InBothLanguages | None:
    """Explain why a pod waits, or what is not known."""
    if verdict.outcome is PodOutcome.OPEN:
        return write_phrase("note_unread", kinds=shorten_list(sorted(verdict.unread)))
    diagnosis = diagnose_verdict(verdict, ProvedChanges(), setting.cluster_name, setting.now)
    return diagnosis.sentence if diagnosis else None

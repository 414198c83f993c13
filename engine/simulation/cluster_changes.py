"""Changes of other objects than the nodes that refuse a pod: pods that end, new nodes, new volumes, changed claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.filters import node_resources, volume_binding, volume_zone
from engine.filters.judgement import Judgement
from engine.filters.verdicts import StatusCode
from engine.simulation.change_trial import ChangeTrial
from engine.simulation.claim_changes import MAX_NODES, iterate_claim_trials, list_refused_by
from engine.simulation.cluster import SimulationCluster
from engine.simulation.holder_changes import iterate_holder_trials
from engine.simulation.verdict import PodVerdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.quantity import PODS, format_amount
from engine.suggestions.suggestion import Edit
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

MAX_EMPTIED: Final = 64
"""Limit of the nodes of which pods are chosen that would have to end: those that lack least."""
MAX_PODS: Final = 5
"""Limit of the pods that are waited for together."""
_HOST: Final = "kubernetes.io/hostname"
_RETURNING: Final = ("DaemonSet", "Node")
"""Owners that make a pod again at once."""


def iterate_cluster_trials(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    """Iterate over the changes after which a node would take the pod that one kind of filter keeps from it."""
    full = list_refused_by(judgement, {node_resources.NAME})
    if cluster.has_pods:
        yield from _iterate_ends(cluster, verdict, judgement, full)
        yield from iterate_holder_trials(cluster, verdict, judgement)
    yield from _iterate_new_nodes(cluster, verdict, judgement, full)
    yield from iterate_claim_trials(cluster, verdict, judgement)
    yield from _iterate_new_volumes(cluster, verdict, judgement)


def _iterate_ends(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement, full: Sequence[str]
) -> Iterator[ChangeTrial]:
    """Iterate over the fewest pods of a node whose end frees what the pod lacks there."""
    large = [name for name in full if judgement.refused[name].code is StatusCode.UNSCHEDULABLE]
    infos = [cluster.snapshot.nodes[name] for name in large]
    lacking = [(info, _measure_missing(info, judgement.request)) for info in infos]
    nearest = sorted(lacking, key=lambda pair: sum(pair[1].values()))[:MAX_EMPTIED]
    ends = [(pods, missing) for info, missing in nearest if (pods := _choose_ends(info, missing))]
    for pods, missing in sorted(ends, key=lambda end: len(end[0]))[:MAX_NODES]:
        edits = tuple(Edit("use", f"{pod.namespace}/{pod.name}", _format_held(pod, missing), "") for pod in pods)
        yield ChangeTrial(edits, verdict.pod, removed=tuple((kinds.POD, *pod.key) for pod in pods))


def _measure_missing(info: NodeInfo, request: Mapping[str, int]) -> dict[str, int]:
    """Measure what a node lacks of each resource, and of places for pods."""
    allocatable = info.node.allocatable
    free = {resource: allocatable.get(resource, 0) - info.requested.get(resource, 0) for resource in request}
    missing = {resource: amount - free[resource] for resource, amount in request.items() if amount > free[resource]}
    missing[PODS] = len(info.pods) + 1 - allocatable.get(PODS, 0)
    return {resource: amount for resource, amount in missing.items() if amount > 0}


def _choose_ends(info: NodeInfo, missing: Mapping[str, int]) -> list[Pod]:
    """Choose few pods that hold enough: those that leave anyway, then the largest; none if too many would have to."""
    left, chosen = dict(missing), list[Pod]()
    candidates = [pod for pod in info.pods if not _returns(pod)]
    while left and candidates and len(chosen) < MAX_PODS:
        pod = max(candidates, key=lambda pod: (pod.is_deleted, _measure_help(pod, left)))
        if not _measure_help(pod, left):
            return []
        candidates.remove(pod)
        chosen.append(pod)
        left = {resource: amount - _get_held(pod, resource) for resource, amount in left.items()}
        left = {resource: amount for resource, amount in left.items() if amount > 0}
    return [] if left else chosen


def _measure_help(pod: Pod, missing: Mapping[str, int]) -> float:
    return sum(min(1.0, _get_held(pod, resource) / amount) for resource, amount in missing.items())


def _get_held(pod: Pod, resource: str) -> int:
    return 1 if resource == PODS else pod.request.get(resource, 0)


def _returns(pod: Pod) -> bool:
    owners = iterate_objects(pod.object, "metadata", "ownerReferences")
    return any(get_text(owner, "kind") in _RETURNING for owner in owners)


def _format_held(pod: Pod, missing: Mapping[str, int]) -> str:
    amounts = ((resource, _get_held(pod, resource)) for resource in missing)
    return ", ".join(f"{format_amount(resource, amount)} {resource}" for resource, amount in amounts if amount)


def _iterate_new_nodes(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement, full: Sequence[str]
) -> Iterator[ChangeTrial]:
    """Iterate over empty copies of nodes that would be large enough, the smallest first, each shape once."""
    large = [name for name in full if judgement.refused[name].code is StatusCode.UNSCHEDULABLE]
    infos = sorted((cluster.snapshot.nodes[name] for name in large), key=_measure_size)
    shapes: dict[tuple[tuple[str, int], ...], NodeInfo] = {}
    for info in infos:
        shapes.setdefault(tuple(sorted(info.node.allocatable.items())), info)
    for info in list(shapes.values())[:MAX_NODES]:
        yield ChangeTrial((Edit("node", info.name, "", ""),), verdict.pod, objects=(_copy_node(info),))


def _measure_size(info: NodeInfo) -> tuple[int, int]:
    amounts = info.node.allocatable
    devices = sum(amount for resource, amount in amounts.items() if "/" in resource)
    return devices, amounts.get("cpu", 0)


def _copy_node(info: NodeInfo) -> Json:
    node: Json = dict(info.node.object)
    name = f"{info.name}-new"
    metadata = get_object(node, "metadata")
    labels = {**get_object(metadata, "labels"), _HOST: name}
    return {**node, "metadata": {**metadata, "name": name, "uid": name, "labels": labels}}


def _iterate_new_volumes(
    cluster: SimulationCluster, verdict: PodVerdict, judgement: Judgement
) -> Iterator[ChangeTrial]:
    """Try new claims in place of those whose volumes the nodes do not reach."""
    if not list_refused_by(judgement, {volume_zone.NAME, volume_binding.NAME}):
        return
    namespace = get_text(verdict.pod, "metadata", "namespace")
    names = {
        get_text(volume, "persistentVolumeClaim", "claimName")
        for volume in iterate_objects(verdict.pod, "spec", "volumes")
    }
    claims = [
        claim
        for claim in cluster.list_kind("PersistentVolumeClaim")
        if get_text(claim, "metadata", "name") in names and get_text(claim, "spec", "volumeName")
        if (get_text(claim, "metadata", "namespace") or "default") == namespace
    ]
    trial = ChangeTrial((), verdict.pod)
    for claim in claims:
        trial = _renew_volume(trial, claim)
    if trial.edits:
        yield trial


def _renew_volume(trial: ChangeTrial, claim: Json) -> ChangeTrial:
    name = get_text(claim, "metadata", "name")
    spec = {key: value for key, value in get_object(claim, "spec").items() if key != "volumeName"}
    metadata = {"name": f"{name}-new", "namespace": get_text(claim, "metadata", "namespace"), "uid": f"{name}-new"}
    new = {**claim, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    pod_spec = get_object(trial.pod, "spec")
    volumes = [
        {**volume, "persistentVolumeClaim": {**get_object(volume, "persistentVolumeClaim"), "claimName": f"{name}-new"}}
        if get_text(volume, "persistentVolumeClaim", "claimName") == name
        else volume
        for volume in iterate_objects(pod_spec, "volumes")
    ]
    edit = Edit("volume", name, get_text(claim, "spec", "volumeName"), f"{name}-new")
    pod = {**trial.pod, "spec": {**pod_spec, "volumes": volumes}}
    return replace(trial, edits=(*trial.edits, edit), pod=pod, objects=(*trial.objects, new))

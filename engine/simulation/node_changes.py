"""Changes of what kube-scheduler's filters look at, each proved by judging the changed pod on the changed cluster.

For every node that the filters refuse, the changes are collected after which none of them does: a toleration, a
selector without a condition, a smaller request, a node that is uncordoned. Nodes that need the same changes are tried
once. `cluster_changes` adds changes of other objects.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.diagnosis.judged_labels import (
    format_taint,
    list_failed_conditions,
    list_untolerated,
)
from engine.diagnosis.texts import CONDITION_TAINTS, CORDON_TAINT
from engine.filters import node_affinity, node_resources, node_unschedulable, taint_toleration
from engine.filters.node_affinity import read_required_affinity
from engine.filters.tolerations import read_tolerations
from engine.simulation.change_trial import ChangeTrial, prove_trial
from engine.simulation.claim_changes import iterate_class_trials
from engine.simulation.cluster import SimulationCluster
from engine.simulation.cluster_changes import iterate_cluster_trials
from engine.simulation.request_changes import iterate_creation_trials, lower_request
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodVerdict
from engine.snapshot.fields import FieldError
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.quantity import PODS
from engine.suggestions.suggestion import Edit
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.answers.suggestions import SuggestedChange

MAX_TRIED: Final = 24
"""Limit of the different sets of changes that are tried, the cheapest first."""
MAX_OF_KIND: Final = 6
"""Limit of the trials with the same kinds of edits, so that cheap ones leave room for others."""
MAX_CHANGES: Final = 5
_MIN_LIKE: Final = 4
"""Length below which one value of a label is not taken for another."""
_CONTAINERS: Final = ("initContainers", "containers")


def find_node_changes(
    cluster: SimulationCluster, verdict: PodVerdict, setting: SimulationSetting
) -> list[SuggestedChange]:
    """Find the cheapest changes after which the pod fits a node that the filters refuse; none is less than another."""
    judgement = verdict.judgement
    if judgement is None:
        return _prove_cheapest(cluster, verdict, list(iterate_creation_trials(cluster, verdict)), setting)
    if any(obstacle.code == "DeviceClassMissing" for obstacle in verdict.obstacles):
        return _prove_cheapest(cluster, verdict, list(iterate_class_trials(cluster, verdict)), setting)
    if judgement.prefilter or judgement.pre_enqueue:
        return []
    if any(obstacle.code == "RequestNotRead" for obstacle in verdict.obstacles):
        return []
    trials: dict[tuple[Edit, ...], ChangeTrial] = {}
    for name in (*judgement.refused, *judgement.outside):
        trial = _build_trial(cluster, verdict, name)
        if trial:
            trials.setdefault(trial.edits, trial)
    for trial in iterate_cluster_trials(cluster, verdict, judgement):
        trials.setdefault(trial.edits, trial)
    return _prove_cheapest(cluster, verdict, list(trials.values()), setting)


def _prove_cheapest(
    cluster: SimulationCluster, verdict: PodVerdict, trials: Sequence[ChangeTrial], setting: SimulationSetting
) -> list[SuggestedChange]:
    changes: list[SuggestedChange] = []
    proved: list[ChangeTrial] = []
    for trial in _select_cheapest(trials):
        if len(changes) == MAX_CHANGES:
            break
        if any(trial.covers(other) for other in proved):
            continue
        if change := prove_trial(cluster, verdict, trial, setting):
            changes.append(change)
            proved.append(trial)
    return changes


def _select_cheapest(trials: Sequence[ChangeTrial]) -> list[ChangeTrial]:
    tried: Counter[frozenset[str]] = Counter()
    selected: list[ChangeTrial] = []
    for trial in sorted(trials, key=lambda trial: (trial.cost, len(trial.edits))):
        constraints = frozenset(edit.constraint for edit in trial.edits)
        tried[constraints] += 1
        if tried[constraints] <= MAX_OF_KIND:
            selected.append(trial)
    return selected[:MAX_TRIED]


def _build_trial(cluster: SimulationCluster, verdict: PodVerdict, name: str) -> ChangeTrial | None:
    """Collect the changes that one node needs; None if it refuses the pod for something that is not changed here."""
    judgement = verdict.judgement
    info = cluster.snapshot.nodes.get(name)
    if judgement is None or info is None:
        return None
    plugins = set(judgement.alone.get(name, {}))
    if name in judgement.outside:
        plugins.add(node_affinity.NAME)
    if refusal := judgement.refused.get(name):
        plugins.add(refusal.plugin)
    edit = {
        node_unschedulable.NAME: _edit_cordon,
        taint_toleration.NAME: _edit_taints,
        node_affinity.NAME: _edit_selector,
        node_resources.NAME: _edit_requests,
    }
    if plugins - edit.keys():
        return None
    trial = ChangeTrial((), verdict.pod)
    for plugin in edit:
        if plugin in plugins:
            edited = edit[plugin](trial, info, judgement.request)
            if edited is None:
                return None
            trial = edited
    return trial if trial.edits else None


def _edit_cordon(trial: ChangeTrial, info: NodeInfo, request: Mapping[str, int]) -> ChangeTrial | None:
    del request
    node = dict(info.node.object)
    spec = {key: value for key, value in get_object(node, "spec").items() if key != "unschedulable"}
    spec["taints"] = [
        taint for taint in iterate_objects(node, "spec", "taints") if get_text(taint, "key") != CORDON_TAINT
    ]
    edit = Edit("uncordon", info.name, "cordoned", "")
    return replace(trial, edits=(*trial.edits, edit), objects=(*trial.objects, {**node, "spec": spec}))


def _edit_taints(trial: ChangeTrial, info: NodeInfo, request: Mapping[str, int]) -> ChangeTrial | None:
    """Add tolerations of the node's taints; a taint of a sick node is none that a pod should tolerate."""
    del request
    try:
        taints = list_untolerated(info.node, read_tolerations(get_object(trial.pod, "spec")))
    except FieldError:
        return None
    is_uncordoned = any(get_text(node, "metadata", "name") == info.name for node in trial.objects)
    left = [taint for taint in taints if not (taint.key == CORDON_TAINT and is_uncordoned)]
    if any(taint.key.startswith(CONDITION_TAINTS) or taint.key == CORDON_TAINT for taint in left):
        return None
    added = [
        {"key": taint.key, "operator": "Equal" if taint.value else "Exists", "effect": taint.effect}
        | ({"value": taint.value} if taint.value else {})
        for taint in left
    ]
    edits = tuple(Edit("taint", taint.key, "", format_taint(taint)) for taint in left)
    spec = get_object(trial.pod, "spec")
    tolerations = [*iterate_objects(spec, "tolerations"), *added]
    return replace(trial, edits=(*trial.edits, *edits), pod={**trial.pod, "spec": {**spec, "tolerations": tolerations}})


def _edit_selector(trial: ChangeTrial, info: NodeInfo, request: Mapping[str, int]) -> ChangeTrial | None:
    """Drop the conditions that the node does not meet: labels of the selector, and then the whole affinity."""
    del request
    spec = dict(get_object(trial.pod, "spec"))
    labels = info.node.labels
    selector = get_object(spec, "nodeSelector")
    failed = {key: value for key, value in selector.items() if labels.get(key) != value}
    corrected = {key: labels[key] for key, value in failed.items() if _is_like(value, labels.get(key, ""))}
    edits = [
        Edit(
            "selector",
            key,
            f"{key}={value}",
            f"{key}={corrected[key]}" if key in corrected else "",
            _measure_loss(key, corrected),
        )
        for key, value in failed.items()
    ]
    if selector:
        spec["nodeSelector"] = {key: value for key, value in selector.items() if key not in failed} | corrected
    try:
        conditions = list_failed_conditions(read_required_affinity(spec), info.node)
    except FieldError:
        return None
    if conditions:
        affinity = dict(get_object(spec, "affinity"))
        node = {
            key: value for key, value in get_object(affinity, "nodeAffinity").items() if not key.startswith("required")
        }
        spec["affinity"] = {**affinity, "nodeAffinity": node}
        edits.append(Edit("selector", "nodeAffinity", " and ".join(conditions), ""))
    return replace(trial, edits=(*trial.edits, *edits), pod={**trial.pod, "spec": spec})


def _is_like(value: object, label: str) -> bool:
    """Tell whether a label is probably the one that a selector means: one text is the beginning of the other."""
    text = str(value)
    return min(len(text), len(label)) >= _MIN_LIKE and (label.startswith(text) or text.startswith(label))


def _measure_loss(key: str, corrected: Mapping[str, str]) -> float:
    """Measure the share of a selector that is given up: a corrected one selects almost the same."""
    return 0.5 if key in corrected else 1.0


def _edit_requests(trial: ChangeTrial, info: NodeInfo, request: Mapping[str, int]) -> ChangeTrial | None:
    """Lower the requests to what the node has free; a node that is full of pods is not changed."""
    node = info.node
    if len(info.pods) + 1 > node.allocatable.get(PODS, 0):
        return None
    for resource, amount in request.items():
        free = node.allocatable.get(resource, 0) - info.requested.get(resource, 0)
        if amount <= free or resource == PODS:
            continue
        lowered = lower_request(trial.pod, resource, amount, free)
        if free <= 0 or lowered is None:
            return None
        pod, edit = lowered
        trial = replace(trial, edits=(*trial.edits, edit), pod=pod)
    return trial

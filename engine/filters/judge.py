"""kube-scheduler's attempt at one pod, re-enacted on a snapshot: from PreEnqueue to the text behind the counts.

Rules, order and texts are those of kube-scheduler 1.36; `release` has what earlier releases did otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.filters import (
    declared_features,
    dynamic_resources,
    node_affinity,
    node_name,
    node_ports,
    node_resources,
    node_unschedulable,
    pod_affinity,
    taint_toleration,
    topology_spread,
    volume_binding,
    volume_limits,
    volume_restrictions,
    volume_zone,
)
from engine.filters.cycle import NodeCheck, Prepared, SchedulingCycle, Skipped, start_cycle
from engine.filters.dynamic_resources import DynamicResourcesPlugin, WithoutClaims
from engine.filters.judgement import JudgedOutcome, Judgement, count_reasons
from engine.filters.node_judging import NodeJudge
from engine.filters.preemption import PreemptionResult, simulate_preemption
from engine.filters.release import LATEST, SchedulerRelease
from engine.filters.verdicts import NO_NODES, PluginRefusal, StatusCode, Unjudged, compose_message
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, RejectedObject, read_items, read_text
from engine.snapshot.snapshot import Snapshot

Prepare = Callable[[SchedulingCycle], Prepared]
_SCHEDULING_GATES: Final = "SchedulingGates"

_WITHOUT_PREFILTER: Final[Mapping[str, Callable[[SchedulingCycle], NodeCheck]]] = {
    node_unschedulable.NAME: node_unschedulable.prepare,
    node_name.NAME: node_name.prepare,
    taint_toleration.NAME: taint_toleration.prepare,
}
_BEFORE_DEVICES: Final[Mapping[str, Prepare]] = {
    node_affinity.NAME: node_affinity.prepare,
    node_ports.NAME: node_ports.prepare,
    node_resources.NAME: node_resources.prepare,
    volume_restrictions.NAME: volume_restrictions.prepare,
    volume_limits.NAME: volume_limits.prepare,
    volume_binding.NAME: volume_binding.prepare,
    volume_zone.NAME: volume_zone.prepare,
    topology_spread.NAME: topology_spread.prepare,
    pod_affinity.NAME: pod_affinity.prepare,
}
_AFTER_DEVICES: Final[Mapping[str, Prepare]] = {declared_features.NAME: declared_features.prepare}
WITHOUT_CLAIMS: Final = WithoutClaims()
_STATE_NOT_FOUND: Final = "not found"


@dataclass(frozen=True, slots=True)
class PreparedFilters:
    """Every plugin after its PreFilter, up to the one that refused the pod."""

    checks: Mapping[str, NodeCheck]
    skipped: frozenset[str]
    unjudged: tuple[Unjudged, ...]
    refusal: PluginRefusal | None
    devices: Prepared | None
    """DynamicResources; None where a plugin before it refused the pod."""

    @property
    def node_names(self) -> frozenset[str] | None:
        """Names of the only nodes to look at; None for all, and after a refusal, which looks at none."""
        affinity = self.checks.get(node_affinity.NAME)
        return affinity.node_names if affinity and not self.refusal else None


@dataclass(frozen=True, slots=True)
class NodeResults:
    """Nodes by what the filters make of them."""

    refused: Mapping[str, PluginRefusal]
    fitting: tuple[str, ...]
    undecided: Mapping[str, tuple[Unjudged, ...]]
    outside: tuple[str, ...]


def judge(
    snapshot: Snapshot,
    pod: Any,
    *,
    release: SchedulerRelease = LATEST,
    devices: DynamicResourcesPlugin = WITHOUT_CLAIMS,
    alone: bool = False,
) -> Judgement | RejectedObject:
    """Judge a Pod object that waits, as kube-scheduler would on a snapshot.

    devices: DynamicResources. alone: also what each filter by itself says of every node. A pod with a malformed field
    is rejected, with the field and the cause.
    """
    cycle = start_cycle(snapshot, pod, release)
    if isinstance(cycle, RejectedObject):
        return cycle
    try:
        return _run_attempt(cycle, devices, alone=alone)
    except FieldError as error:
        return RejectedObject("Pod", *cycle.pod.key, error.path, error.cause)


def _run_attempt(cycle: SchedulingCycle, devices: DynamicResourcesPlugin, *, alone: bool) -> Judgement:
    gates, claims = _check_gates(cycle), devices.check_pre_enqueue(cycle)
    filters = prepare_filters(cycle, devices)
    node_judge = NodeJudge(cycle, filters.checks)
    nodes = judge_nodes(node_judge, filters)
    unjudged = (*_find_unread_nodes(cycle), *filters.unjudged, *([claims] if isinstance(claims, Unjudged) else ()))
    pre_enqueue = tuple(refusal for refusal in (gates, claims) if isinstance(refusal, PluginRefusal))
    outcome = _decide_outcome(cycle, pre_enqueue, filters, nodes, is_certain=not unjudged)
    counts = count_reasons(nodes.refused, len(nodes.outside), compose_outside_reason(cycle.release))
    report = _report(node_judge, filters, nodes, devices, outcome if not unjudged else None, counts)
    return Judgement(
        pod=cycle.pod,
        request=cycle.request,
        outcome=outcome,
        total=len(cycle.snapshot.nodes),
        pre_enqueue=pre_enqueue,
        prefilter=filters.refusal,
        skipped=filters.skipped,
        node_names=filters.node_names,
        refused=nodes.refused,
        outside=nodes.outside,
        fitting=nodes.fitting,
        undecided=nodes.undecided,
        unjudged=unjudged,
        counts=counts,
        message=report.message,
        error_messages=report.errors,
        preemption_node=report.preemption_node,
        alone=_judge_alone(node_judge, filters) if alone and not filters.refusal else {},
    )


def prepare_filters(cycle: SchedulingCycle, devices: DynamicResourcesPlugin) -> PreparedFilters:
    """Run PreFilter of every plugin in kube-scheduler's order, up to the first refusal."""
    checks: dict[str, NodeCheck] = {name: prepare(cycle) for name, prepare in _WITHOUT_PREFILTER.items()}
    plugins = {**_BEFORE_DEVICES, dynamic_resources.NAME: devices.prepare, **_AFTER_DEVICES}
    skipped: set[str] = set()
    unjudged: list[Unjudged] = []
    device_result: Prepared | None = None
    for name, prepare in plugins.items():
        prepared = prepare(cycle)
        if name == dynamic_resources.NAME:
            device_result = prepared
        if isinstance(prepared, PluginRefusal):
            return PreparedFilters(checks, frozenset(skipped), tuple(unjudged), prepared, device_result)
        if isinstance(prepared, Skipped):
            skipped.add(name)
        elif isinstance(prepared, Unjudged):
            unjudged.append(prepared)
        else:
            checks[name] = prepared
    return PreparedFilters(checks, frozenset(skipped), tuple(unjudged), None, device_result)


def judge_nodes(node_judge: NodeJudge, filters: PreparedFilters) -> NodeResults:
    """Judge every node that may be looked at."""
    refused: dict[str, PluginRefusal] = {}
    undecided: dict[str, tuple[Unjudged, ...]] = {}
    fitting: list[str] = []
    outside: list[str] = []
    nodes = {} if filters.refusal else node_judge.cycle.snapshot.nodes
    names = filters.node_names
    for name, node in nodes.items():
        if names is not None and name not in names:
            outside.append(name)
            continue
        verdict = node_judge.judge(node)
        if isinstance(verdict, PluginRefusal):
            refused[name] = verdict
        elif verdict:
            undecided[name] = verdict
        else:
            fitting.append(name)
    return NodeResults(refused, tuple(fitting), undecided, tuple(outside))


def _find_unread_nodes(cycle: SchedulingCycle) -> tuple[Unjudged, ...]:
    """Note that nodes are missing altogether; no plugin of its own needs them."""
    unread = cycle.snapshot.find_missing_kinds(kinds.NODE)
    return (Unjudged("", unread),) if unread else ()


def _decide_outcome(
    cycle: SchedulingCycle,
    pre_enqueue: tuple[PluginRefusal, ...],
    filters: PreparedFilters,
    nodes: NodeResults,
    *,
    is_certain: bool,
) -> JudgedOutcome:
    if cycle.pod.is_deleted:
        return JudgedOutcome.SKIPPED
    if pre_enqueue:
        return JudgedOutcome.GATED
    if not cycle.snapshot.nodes and is_certain:
        return JudgedOutcome.ERROR
    if filters.refusal:
        return _classify_refusal(filters.refusal)
    if any(refusal.code is StatusCode.ERROR for refusal in nodes.refused.values()):
        return JudgedOutcome.ERROR
    if nodes.fitting:
        return JudgedOutcome.FITS if is_certain else JudgedOutcome.OPEN
    is_open = nodes.undecided or cycle.snapshot.find_missing_kinds(kinds.NODE)
    return JudgedOutcome.OPEN if is_open else JudgedOutcome.UNFIT


def _classify_refusal(refusal: PluginRefusal) -> JudgedOutcome:
    return JudgedOutcome.ERROR if refusal.code is StatusCode.ERROR else JudgedOutcome.PREFILTER


def compose_outside_reason(release: SchedulerRelease) -> str:
    """Compose kube-scheduler's words for a node outside the set that a PreFilter leaves."""
    if release.names_filtering_plugins:
        return f"node(s) didn't satisfy plugin(s) [{node_affinity.NAME}]"
    return "node is filtered out by the prefilter result"


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """Texts that kube-scheduler writes about an attempt."""

    message: str = ""
    errors: tuple[str, ...] = ()
    preemption_node: str | None = None


def _report(
    node_judge: NodeJudge,
    filters: PreparedFilters,
    nodes: NodeResults,
    devices: DynamicResourcesPlugin,
    outcome: JudgedOutcome | None,
    counts: Mapping[str, int],
) -> AttemptReport:
    """Compose the message of a refusal or an error; outcome: None where unread objects leave the message open."""
    if outcome is JudgedOutcome.ERROR:
        errors = _list_errors(filters, nodes)
        return AttemptReport(errors[0], errors)
    if outcome not in (JudgedOutcome.UNFIT, JudgedOutcome.PREFILTER):
        return AttemptReport()
    preemption, text = _run_post_filter(node_judge, filters, nodes, devices)
    prefilter = ", ".join(filters.refusal.reasons) if filters.refusal else ""
    message = compose_message(len(node_judge.cycle.snapshot.nodes), counts, prefilter=prefilter, post_filter=text)
    return AttemptReport(message, preemption_node=preemption.node if preemption else None)


def _list_errors(filters: PreparedFilters, nodes: NodeResults) -> tuple[str, ...]:
    """List the texts of which kube-scheduler reports one: several nodes are judged at the same time."""
    if filters.refusal and filters.refusal.code is StatusCode.ERROR:
        text = ", ".join(filters.refusal.reasons)
        return (f'running PreFilter plugin "{filters.refusal.plugin}": {text}',)
    errors = (refusal for refusal in nodes.refused.values() if refusal.code is StatusCode.ERROR)
    return tuple(dict.fromkeys(refusal.reasons[0] for refusal in errors)) or (NO_NODES,)


def _run_post_filter(
    node_judge: NodeJudge, filters: PreparedFilters, nodes: NodeResults, devices: DynamicResourcesPlugin
) -> tuple[PreemptionResult | None, str]:
    """Return what preemption finds, and the text behind the counts; it is empty where preemption makes room."""
    cycle = node_judge.cycle
    texts = []
    if cycle.release.has("DynamicResourceAllocation"):
        if filters.devices is None:
            return None, _STATE_NOT_FOUND
        texts.append(devices.describe_post_filter(cycle, filters.devices))
    preemption = simulate_preemption(node_judge, nodes.refused)
    return preemption, "" if preemption.node else ", ".join([*texts, preemption.text])


def _judge_alone(node_judge: NodeJudge, filters: PreparedFilters) -> dict[str, dict[str, PluginRefusal]]:
    names = filters.node_names
    verdicts = (
        (name, node_judge.judge_alone(node))
        for name, node in node_judge.cycle.snapshot.nodes.items()
        if names is None or name in names
    )
    return {name: refusals for name, refusals in verdicts if refusals}


def _check_gates(cycle: SchedulingCycle) -> PluginRefusal | None:
    """Refuse a pod with scheduling gates, which keep it from the queue."""
    gates = [read_text(gate, "name", location) for location, gate in read_items(cycle.spec, "schedulingGates", "spec")]
    if not gates:
        return None
    return PluginRefusal(
        _SCHEDULING_GATES, StatusCode.UNRESOLVABLE, (f"waiting for scheduling gates: [{' '.join(gates)}]",)
    )

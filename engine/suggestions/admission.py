"""The one change that admits most of many waiting pods: each is tried, and the pods take their devices in turn.
Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.judge.reservation import release, reserve
from engine.suggestions.answer import NOT_KNOWN
from engine.suggestions.ask import ANNOTATION_CONSTRAINTS, Ask, Constraint
from engine.suggestions.nodes import UnregisteredNodes, restrict_trial
from engine.suggestions.suggestion import ADMINISTRATORS
from engine.suggestions.trial import FLAGS, Trial, find_rows
from schemas.answers.diagnosis import Actor, InBothLanguages
from schemas.answers.suggestions import AdmittedWorkload, AdmittingChangeFound, SuggestionsForMany
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

MAX_NODES: Final = 20
"""Limit of the nodes with cordoned, unhealthy or unregistered devices that are tried: those with the most."""


class PendingPod(NamedTuple):
    """A pod that holds nothing, with a UID of its own: it holds what it takes while the next pods are tried."""

    ask: Ask
    offered: tuple[str, ...]
    """Nodes that kube-scheduler offered."""


@dataclass(frozen=True, slots=True)
class AdmittingChange:
    """A change, and the pods that it admits.

    where: the node whose devices are uncordoned, healed or registered, or the namespace without its quotas; empty if
    each pod gives up its part of the constraint. admitted: positions among the pods, without those that already fit.
    """

    constraint: Constraint
    where: str
    admitted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """Pods that already fit, and changes. fit: positions of the pods. changes: the one that admits most comes first."""

    fit: tuple[int, ...]
    changes: list[AdmittingChange]


class _Change(NamedTuple):
    constraint: Constraint
    where: str
    context: AbstractContextManager[None]
    pods: Sequence[PendingPod | None]
    """Pods at their positions, with the requests that they have after the change; None for a pod that it does not
    affect."""
    trial: Trial


def rank_changes(
    trial: Trial, pending: Sequence[PendingPod], unregistered: UnregisteredNodes | None = None
) -> AdmissionResult:
    """Rank every change that admits a pod. Pods take their devices in the given order, those that already fit first."""
    admitting = []
    with ExitStack() as back:
        fit = _admit_pods(trial, pending, back)
        fitting = frozenset(fit)
        refused = [None if position in fitting else pod for position, pod in enumerate(pending)]
        changes = [
            _iterate_changes(trial, refused),
            _iterate_registrations(trial, refused, unregistered) if unregistered else (),
        ]
        for change in chain(*changes):
            with change.context, ExitStack() as undone:
                admitted = _admit_pods(change.trial, change.pods, undone)
            if admitted:
                admitting.append(AdmittingChange(change.constraint, change.where, tuple(admitted)))
    admitting.sort(key=lambda admission: (-len(admission.admitted), admission.constraint, admission.where))
    return AdmissionResult(tuple(fit), admitting)


def _iterate_changes(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    yield from _iterate_dropped_constraints(trial, refused)
    for constraint, column, value, _ in FLAGS:
        rows = {node: find_rows(trial.columns, node, column, value=value) for node in trial.offered}
        worst = sorted((node for node in rows if rows[node]), key=lambda node: (-len(rows[node]), node))
        for node in worst[:MAX_NODES]:
            pods = _offer_only(node, refused)
            yield _Change(constraint, node, trial.with_flags(column, rows[node], value=not value), pods, trial)
    yield from _iterate_quotas(trial, refused)


def _iterate_registrations(
    trial: Trial, refused: Sequence[PendingPod | None], unregistered: UnregisteredNodes
) -> Iterator[_Change]:
    columns = unregistered.columns
    again = restrict_trial(trial, unregistered, columns.node_names)
    size = {node: entry.size for node in again.offered if (entry := columns.get_entry(node))}
    for node in sorted(size, key=lambda node: (-size[node], node))[:MAX_NODES]:
        yield _Change("registration", node, nullcontext(), _offer_only(node, refused), again)


def _offer_only(node: str, pods: Sequence[PendingPod | None]) -> list[PendingPod | None]:
    """Offer the pods only this node, because every other node still refuses them."""
    return [pod._replace(offered=(node,)) if pod and node in pod.offered else None for pod in pods]


def _iterate_dropped_constraints(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    for constraint in ANNOTATION_CONSTRAINTS:
        pods = [
            pod._replace(ask=pod.ask.without([constraint]))
            if pod and pod.ask.list_annotation_keys(constraint)
            else None
            for pod in refused
        ]
        yield _Change(constraint, "", nullcontext(), pods, trial)
    registered_names = frozenset(trial.columns.node_names)
    pods = [
        pod._replace(offered=trial.columns.node_names) if pod and registered_names.difference(pod.offered) else None
        for pod in refused
    ]
    yield _Change("nodes", "", nullcontext(), pods, trial)


def _iterate_quotas(trial: Trial, refused: Sequence[PendingPod | None]) -> Iterator[_Change]:
    quotas = trial.columns.quotas
    for namespace in sorted({pod.ask.namespace for pod in refused if pod} & quotas.limits.keys()):
        # Only the limits go: the use of the namespace's pods is still counted.
        limits = {name: limit for name, limit in quotas.limits.items() if name != namespace}
        pods = [pod if pod and pod.ask.namespace == namespace else None for pod in refused]
        yield _Change("quota", namespace, trial.with_quotas(replace(quotas, limits=limits)), pods, trial)


def _admit_pods(trial: Trial, pods: Sequence[PendingPod | None], back: ExitStack) -> list[int]:
    """Place the pods that fit one after the other and return their positions. They hold their devices until ``back`` is
    closed."""
    placed: list[int] = []
    refused: list[PendingPod] = []
    for position, pod in enumerate(pods):
        # Many pods are equal, and an equal pod is refused for the same reason: devices only get fuller.
        if pod is None or any(_is_equal(pod, other) for other in refused):
            continue
        decision = trial.decide(pod.ask, names=pod.offered)
        if decision is None:
            refused.append(pod)
            continue
        back.callback(release, trial.columns, str(pod.ask.metadata.get("uid", "")))
        reserve(trial.columns, decision, {"metadata": pod.ask.metadata})
        placed.append(position)
    return placed


def _is_equal(pod: PendingPod, other: PendingPod) -> bool:
    is_equal = pod.ask.requests == other.ask.requests and pod.ask.annotations == other.ask.annotations
    return is_equal and pod.ask.namespace == other.ask.namespace and pod.offered == other.offered


MAX_PODS: Final = 200
"""Limit of the pods that are tried: each that a change lets in takes a decision of the scheduler."""
_MAX_ITEMS: Final = 20
_MAX_WORKLOADS: Final = 10
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "cordon": ("Uncordon the devices of {where}", "解除节点 {where} 上设备的封锁"),
    "health": ("Repair the unhealthy devices of {where}", "修复节点 {where} 上不健康的设备"),
    "registration": (
        "Get the device plugin of {where} to register its devices again",
        "让节点 {where} 的设备插件重新注册设备",
    ),
    "quota": ("Lift the quota of namespace {where}", "取消命名空间 {where} 的配额限制"),
    "type": ("Give up the annotations that name a type of device", "去掉限定设备型号的注解"),
    "uuid": ("Give up the annotations that name devices by UUID", "去掉按 UUID 限定设备的注解"),
    "mode": ("Give up the annotation that names a mode of the devices", "去掉限定设备模式的注解"),
    "numa": ("Give up the annotation that binds to one NUMA node", "去掉绑定单个 NUMA 节点的注解"),
    "policy": ("Give up the strict device policy", "去掉严格的设备策略"),
    "nodes": (
        "Let kube-scheduler offer every node, which selectors, affinities, taints or cordons keep from the pods",
        "让 kube-scheduler 提供全部节点：目前被节点选择器、亲和性、污点或封锁排除",
    ),
}
_ADMITS: Final = ("{what}: then {pods} of the {judged} pods {fit}.", "{what}：{judged} 个 Pod 中有 {pods} 个可以调度。")


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Number of pods with equal requests, and the latest attempt of one of them."""

    attempt: AttemptSummarized
    workload: str
    """Owner as ``Job/train``; ``Pod/name`` for a pod without an owner."""
    pods: int


@dataclass(slots=True)
class Judged:
    """Groups of the tried pods, in the order of the trials, and their admission."""

    pods: list[PendingPods] = field(default_factory=list)
    admission: AdmissionResult = field(default_factory=lambda: AdmissionResult((), []))


def judge(
    columns: ClusterColumns, waiting: Sequence[PendingPods], unregistered: UnregisteredNodes | None = None
) -> Judged:
    """Try the changes for the first ``MAX_PODS`` pods. Afterwards the columns are as they were before."""
    tried = [(group, pod) for group in waiting for pod in _iterate_pods(columns, group)][:MAX_PODS]
    # The policy decides which fitting node is chosen, and not whether one fits.
    trial = Trial(columns, columns.node_names, SchedulingPolicy())
    return Judged([group for group, _ in tried], rank_changes(trial, [pod for _, pod in tried], unregistered))


def _iterate_pods(columns: ClusterColumns, group: PendingPods) -> Iterator[PendingPod]:
    attempt, offered = group.attempt, tuple(group.attempt.nodes)
    for number in range(min(group.pods, MAX_PODS)):
        pod = attempt.pod.model_copy(update={"uid": f"{attempt.attempt_id}-{number}"})
        ask = Ask.from_attempt(pod, attempt.requests, attempt.constraints or {}, columns.vendors)
        yield PendingPod(ask, offered)


def build_suggestions_for_many(
    cluster: str, namespace: str | None, as_of: datetime, waiting: int, judged: Judged, unknown: Sequence[str]
) -> SuggestionsForMany:
    """Build the answer. waiting: number of waiting pods; unknown: keys of the texts about missing facts."""
    if any(group.attempt.constraints is None for group in judged.pods):
        unknown = [*unknown, "constraints"]
    return SuggestionsForMany(
        cluster=cluster,
        namespace=namespace,
        as_of=format_rfc3339(as_of),
        waiting=waiting,
        judged=len(judged.pods),
        fit=len(judged.admission.fit),
        items=[_to_admitting_change(change, judged.pods) for change in judged.admission.changes[:_MAX_ITEMS]],
        not_known=[NOT_KNOWN[entry] for entry in dict.fromkeys(unknown)],
    )


def _to_admitting_change(change: AdmittingChange, pods: Sequence[PendingPods]) -> AdmittingChangeFound:
    admitted = [pods[position] for position in change.admitted]
    workloads = Counter((pod.attempt.pod.namespace, pod.workload) for pod in admitted)
    return AdmittingChangeFound(
        sentence=_write_sentence(change, len(pods)),
        who_acts=_get_actor(change.constraint),
        constraint=change.constraint,
        where=change.where,
        pods=len(admitted),
        devices=sum(request.count for pod in admitted for request in pod.attempt.requests if not request.init),
        workloads=[
            AdmittedWorkload(namespace=namespace, workload=workload, pods=count)
            for (namespace, workload), count in workloads.most_common(_MAX_WORKLOADS)
        ],
    )


def _get_actor(constraint: Constraint) -> Actor:
    return "administrator" if constraint in ADMINISTRATORS else "you"


def _write_sentence(change: AdmittingChange, judged: int) -> InBothLanguages:
    pods = len(change.admitted)
    english, chinese = (
        text.format(what=what.format(where=change.where), pods=pods, judged=judged, fit="fits" if pods == 1 else "fit")
        for what, text in zip(_TEXTS[change.constraint], _ADMITS, strict=True)
    )
    return InBothLanguages(en=english, zh=chinese)

"""The answer that says which one change would let most of many waiting pods in. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.suggestions.admission import AdmissionResult, AdmittingChange, PendingPod, changes_by_admission
from engine.suggestions.ask import Ask, Constraint
from engine.suggestions.nodes import UnregisteredNodes
from engine.suggestions.suggestion import ADMINISTRATORS
from engine.suggestions.texts import NOT_KNOWN
from engine.suggestions.trial import Trial
from schemas.answers.diagnosis import Actor, InBothLanguages
from schemas.answers.suggestions import AdmittedWorkload, AdmittingChangeFound, SuggestionsForMany
from schemas.codec.records import format_rfc3339
from schemas.events import AttemptSummarized

MAX_PODS: Final = 200
"""How many pods are tried: each that a change lets in takes a decision of the scheduler."""
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
    """How many pods ask for the same, with the latest attempt of one of them."""

    attempt: AttemptSummarized
    workload: str
    """As ``Job/train``; ``Pod/name`` for a pod without an owner."""
    pods: int


@dataclass(slots=True)
class Judged:
    """pods: the groups that the tried pods are of, in the order in which they were tried."""

    pods: list[PendingPods] = field(default_factory=list)
    admission: AdmissionResult = field(default_factory=lambda: AdmissionResult((), []))


def judge(
    columns: ClusterColumns, waiting: Sequence[PendingPods], unregistered: UnregisteredNodes | None = None
) -> Judged:
    """Tries the changes for the first ``MAX_PODS`` pods. The columns are afterwards as they were before."""
    tried = [(group, pod) for group in waiting for pod in _each(columns, group)][:MAX_PODS]
    # Which of the nodes that fit is chosen depends on it, and not whether one does.
    trial = Trial(columns, columns.node_names, SchedulingPolicy())
    return Judged([group for group, _ in tried], changes_by_admission(trial, [pod for _, pod in tried], unregistered))


def _each(columns: ClusterColumns, group: PendingPods) -> Iterator[PendingPod]:
    attempt, offered = group.attempt, tuple(group.attempt.nodes)
    for number in range(min(group.pods, MAX_PODS)):
        pod = attempt.pod.model_copy(update={"uid": f"{attempt.attempt_id}-{number}"})
        ask = Ask.of_attempt(pod, attempt.requests, attempt.constraints or {}, columns.vendors)
        yield PendingPod(ask, offered)


def suggestions_for_many(
    cluster: str, namespace: str | None, as_of: datetime, waiting: int, judged: Judged, unknown: Sequence[str]
) -> SuggestionsForMany:
    """The answer. waiting: how many pods wait; unknown: keys of the texts about what is not known."""
    if any(group.attempt.constraints is None for group in judged.pods):
        unknown = [*unknown, "constraints"]
    return SuggestionsForMany(
        cluster=cluster,
        namespace=namespace,
        as_of=format_rfc3339(as_of),
        waiting=waiting,
        judged=len(judged.pods),
        fit=len(judged.admission.fit),
        items=[_item(change, judged.pods) for change in judged.admission.changes[:_MAX_ITEMS]],
        not_known=[NOT_KNOWN[entry] for entry in dict.fromkeys(unknown)],
    )


def _item(change: AdmittingChange, pods: Sequence[PendingPods]) -> AdmittingChangeFound:
    admitted = [pods[place] for place in change.admitted]
    workloads = Counter((pod.attempt.pod.namespace, pod.workload) for pod in admitted)
    return AdmittingChangeFound(
        sentence=_sentence(change, len(pods)),
        who_acts=_actor(change.constraint),
        constraint=change.constraint,
        where=change.where,
        pods=len(admitted),
        devices=sum(request.count for pod in admitted for request in pod.attempt.requests if not request.init),
        workloads=[
            AdmittedWorkload(namespace=namespace, workload=workload, pods=count)
            for (namespace, workload), count in workloads.most_common(_MAX_WORKLOADS)
        ],
    )


def _actor(constraint: Constraint) -> Actor:
    return "administrator" if constraint in ADMINISTRATORS else "you"


def _sentence(change: AdmittingChange, judged: int) -> InBothLanguages:
    pods = len(change.admitted)
    english, chinese = (
        text.format(what=what.format(where=change.where), pods=pods, judged=judged, fit="fits" if pods == 1 else "fit")
        for what, text in zip(_TEXTS[change.constraint], _ADMITS, strict=True)
    )
    return InBothLanguages(en=english, zh=chinese)

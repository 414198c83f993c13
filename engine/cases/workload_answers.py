"""Answers about the workloads of a case: their pods by what keeps them, also where none of them exists. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from engine.cases.unmade_answers import (
    NOT_MADE,
    OF_UNREAD_PODS,
    count_pods,
    diagnose_cause,
    diagnose_unmade,
    quote_status,
)
from engine.cases.unmade_causes import find_cause
from engine.cases.unmade_pods import build_unmade_pod
from engine.cases.workload_timeline import build_workload_timeline
from engine.cases.workloads import (
    CaseWorkload,
    has_ended,
    is_over,
    is_refused,
    list_family,
    list_pods,
)
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import Fields, get_text, list_conditions
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.answers.workloads import PodsOfWorkload, WorkloadDiagnosis
from schemas.codec.records import format_rfc3339
from schemas.events import DEFAULT_CLUSTER, AttemptSummarized

MAX_DIAGNOSED: Final = 100
"""Waiting pods that are diagnosed; further ones join those about which their scheduler wrote the same."""
MAX_NAMES: Final = 20


class WorkloadSource(Protocol):
    """Source of answers about a workload: objects at a time, and diagnoses of its pods."""

    @property
    def objects(self) -> CaseObjects: ...

    @property
    def now(self) -> datetime:
        """Time of the objects."""

    def diagnose(self, names: Sequence[str]) -> Sequence[Diagnosis]:
        """Diagnose pods (``namespace/name``), in this order."""

    def build_unmade_facts(self, key: CaseWorkload, pod: Fields | None) -> DiagnosisFacts:
        """Build the facts about a pod that the workload has not made; ``pod`` is made from its template."""

    def collect_attempts(self, names: Iterable[str]) -> Mapping[str, AttemptSummarized]:
        """Collect the latest attempts of the pods that have one."""


class _Pods(NamedTuple):
    """Pods of a workload by where they are."""

    waiting: list[Fields]
    placed: list[Fields]
    refused: list[Fields]
    """Pods that their node refused or evicted."""
    ended: list[Fields]


def diagnose_workload(case: WorkloadSource, key: CaseWorkload) -> WorkloadDiagnosis:
    """Diagnose a workload that the case has."""
    objects, now = case.objects, case.now
    family = list_family(objects, key)
    pods = list_pods(objects, key, family)
    divided = _divide(pods)
    wanted = count_pods(objects, key, family)
    unmade = max((wanted or 0) - len(divided.waiting) - len(divided.placed), 0)
    if key.kind == "PodGroup.scheduling.run.ai" or (wanted is None and not pods):
        # KAI makes a group for pods that exist; elsewhere a template without pods is what waits.
        unmade = 0 if pods or is_over(objects.find(key.kind, key.name, key.namespace)) else 1
    idle = None if unmade or divided.waiting or divided.placed else _diagnose_idle(objects, now, key, family, pods)
    groups = [
        *([_to_unmade_group(_diagnose_unmade(case, key, family, unmade, pods), unmade)] if unmade else []),
        *([_to_unmade_group(idle, 0)] if idle else []),
        *_group_waiting(case, divided.waiting),
        *_group_others(case, divided),
    ]
    groups.sort(key=_rank_group)
    waiting = len(divided.waiting) + unmade
    return WorkloadDiagnosis(
        cluster=DEFAULT_CLUSTER,
        namespace=key.namespace,
        kind=key.kind,
        name=key.name,
        state=_derive_state(divided, waiting),
        at=format_rfc3339(now),
        sentence=_write_sentence(groups, divided, waiting, wanted),
        wanted=wanted,
        placed=len(divided.placed),
        waiting=waiting,
        ended=len(divided.ended) + len(divided.refused),
        groups=groups,
        objects=[str(other) for other in family[:MAX_NAMES]],
        timeline=build_workload_timeline(objects, family, pods, case.collect_attempts(map(name_pod, pods)), now),
    )


def _diagnose_unmade(
    case: WorkloadSource, key: CaseWorkload, family: Sequence[CaseWorkload], count: int, pods: Sequence[Fields]
) -> Diagnosis:
    facts = case.build_unmade_facts(key, build_unmade_pod(case.objects, key, family))
    return diagnose_unmade(facts, case.objects, key, family, count, pods)


def _diagnose_idle(
    objects: CaseObjects, now: datetime, key: CaseWorkload, family: Sequence[CaseWorkload], pods: Sequence[Fields]
) -> Diagnosis | None:
    """Diagnose a workload that wants no pods now: it is suspended, its schedule is wrong, or it has failed."""
    obstacle = find_cause(objects, family, pods, now) or (None if pods else quote_status(objects, key))
    return diagnose_cause(DiagnosisFacts(DEFAULT_CLUSTER, key.namespace, key.name, now), obstacle)


def name_pod(pod: Fields) -> str:
    """Name a pod as ``namespace/name``."""
    return f"{get_text(pod, 'metadata', 'namespace') or 'default'}/{get_text(pod, 'metadata', 'name')}"


def _divide(pods: Iterable[Fields]) -> _Pods:
    divided = _Pods([], [], [], [])
    for pod in pods:
        if is_refused(pod):
            divided.refused.append(pod)
        elif has_ended(pod):
            divided.ended.append(pod)
        elif get_text(pod, "spec", "nodeName"):
            divided.placed.append(pod)
        else:
            divided.waiting.append(pod)
    return divided


def _group_waiting(case: WorkloadSource, pods: Sequence[Fields]) -> list[PodsOfWorkload]:
    """Group waiting pods by their main obstacle."""
    groups: dict[str, tuple[Diagnosis | None, list[str]]] = {}
    codes: dict[str, str] = {}
    explained = pods[:MAX_DIAGNOSED]
    for pod, diagnosis in zip(explained, case.diagnose([*map(name_pod, explained)]), strict=True):
        code = diagnosis.obstacle.code if diagnosis.obstacle else diagnosis.state
        codes.setdefault(_get_words(pod), code)
        groups.setdefault(code, (diagnosis, []))[1].append(diagnosis.name)
    for pod in pods[MAX_DIAGNOSED:]:
        code = codes.get(_get_words(pod), "")
        groups.setdefault(code, (None, []))[1].append(get_text(pod, "metadata", "name"))
    return [_to_group(main, names) for main, names in groups.values()]


def _get_words(pod: Fields) -> str:
    """Get the words of a pod's scheduler, which it writes about pods of the same shape alike."""
    return next((entry.message for entry in list_conditions(pod) if entry.type == "PodScheduled"), "")


def _to_group(diagnosis: Diagnosis | None, names: Sequence[str], nodes: Sequence[str] = ()) -> PodsOfWorkload:
    return PodsOfWorkload(
        state=diagnosis.state if diagnosis else "not judged",
        count=len(names),
        pods=list(names[:MAX_NAMES]),
        nodes=list(nodes[:MAX_NAMES]),
        obstacle=diagnosis.obstacle if diagnosis else None,
        diagnosis=diagnosis,
    )


def _to_unmade_group(diagnosis: Diagnosis, count: int) -> PodsOfWorkload:
    return _to_group(diagnosis, []).model_copy(update={"state": "not made", "count": count})


def _group_others(case: WorkloadSource, divided: _Pods) -> Iterator[PodsOfWorkload]:
    """Group placed pods, those that do not start by what keeps them, and the pods that their node refused."""
    starting = [pod for pod in divided.placed if get_text(pod, "status", "phase") != "Running"]
    troubled = [*starting, *divided.refused][:MAX_DIAGNOSED]
    groups: dict[str, tuple[Diagnosis, list[str], list[str]]] = {}
    nodes = {name_pod(pod): get_text(pod, "spec", "nodeName") for pod in (*divided.placed, *divided.refused)}
    for diagnosis in case.diagnose([*map(name_pod, troubled)]):
        if diagnosis.obstacle:
            name = f"{diagnosis.namespace}/{diagnosis.name}"
            _, names, places = groups.setdefault(diagnosis.obstacle.code, (diagnosis, [], []))
            names.append(diagnosis.name)
            places.append(nodes.pop(name))
    for diagnosis, names, places in groups.values():
        yield _to_group(diagnosis, names, list(dict.fromkeys(places)))
    placed = [name for pod in divided.placed if (name := name_pod(pod)) in nodes]
    if placed:
        yield PodsOfWorkload(
            state="placed",
            count=len(placed),
            pods=[name.partition("/")[2] for name in placed[:MAX_NAMES]],
            nodes=list(dict.fromkeys(nodes[name] for name in placed))[:MAX_NAMES],
            obstacle=None,
            diagnosis=None,
        )


def _rank_group(group: PodsOfWorkload) -> tuple[bool, int, int]:
    """Rank a group: waiting pods first, of them the cause before those that wait for it, then the most pods."""
    code = group.obstacle.code if group.obstacle else ""
    if group.state == "not made" and code not in (NOT_MADE, "StatefulSetOrder"):
        order = 0
    elif group.state == "binding" or not code:
        order = 3
    else:
        # A gang waits for the member that fits nowhere, and pods in order for the first of them.
        order = 2 if code.startswith(("Gang", "StatefulSetOrder")) else 1
    return group.state in ("placed", "rejected"), order, -group.count


def _derive_state(divided: _Pods, waiting: int) -> Literal["placed", "waiting", "ended", "empty"]:
    if waiting:
        return "waiting"
    if divided.placed:
        return "placed"
    return "ended" if divided.ended or divided.refused else "empty"


def _write_sentence(
    groups: Sequence[PodsOfWorkload], divided: _Pods, waiting: int, wanted: int | None
) -> InBothLanguages:
    total = waiting + len(divided.placed)
    if waiting:
        group = groups[0]
        sentence = group.diagnosis.sentence if group.diagnosis else write_phrase("no_pods_wanted")
        if not divided.waiting and not divided.placed:
            if wanted is None:
                return write_phrase("no_pod_known", sentence=sentence)
            is_unread = group.obstacle is not None and group.obstacle.code in OF_UNREAD_PODS
            return write_phrase("no_pod_read" if is_unread else "no_pod_exists", wanted=total, sentence=sentence)
        name = "pods_wait" if group.count == waiting else "some_pods_wait"
        return write_phrase(name, waiting=waiting, wanted=total, count=group.count, sentence=sentence)
    if divided.placed:
        nodes = list(dict.fromkeys(get_text(pod, "spec", "nodeName") for pod in divided.placed))
        return write_phrase("pods_placed", count=len(divided.placed), nodes=shorten_list(nodes))
    if groups and groups[0].diagnosis and groups[0].state == "not made":
        return write_phrase("no_pod_now", sentence=groups[0].diagnosis.sentence)
    if ended := len(divided.ended) + len(divided.refused):
        return write_phrase("pods_ended", count=ended)
    return write_phrase("no_pods_wanted")

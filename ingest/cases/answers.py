"""Answers about the pods of a case, each about the pod's state and latest attempt. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.headline import add_changes, add_choice
from engine.diagnosis.log_ends import iterate_log_notes
from engine.diagnosis.outcome import JudgedPod
from engine.diagnosis.tree import diagnose
from engine.snapshot import kinds
from ingest.cases.log_pods import AttemptInLog, PodInLog
from ingest.cases.read_case import UNDATED, ClusterCase, list_pod_names
from runtime.kubernetes.object_fields import get_text
from schemas.answers.attempts import DeviceLog, NodeLog
from schemas.answers.diagnosis import Diagnosis, InBothLanguages, NodeDifference
from schemas.events import DEFAULT_CLUSTER, AttemptSummarized
from schemas.json_types import Json

if TYPE_CHECKING:
    from schemas.answers.comparisons import PodScores
    from schemas.answers.suggestions import Suggestions
    from schemas.events import FindingReported
from engine.diagnosis.layers.kueue import explain_inactive_queue
from engine.diagnosis.layers.kueue_workloads import CLUSTER_QUEUE, LOCAL_QUEUE
from engine.diagnosis.texts import write_phrase, write_remedy, write_sentence
from engine.snapshot.case_objects import CaseObjects

MAX_SIMILAR_NAMES: Final = 5
MAX_SHOWN_EVENTS: Final = 5
"""Limit of the events that stand for an answer about pods."""
_GROUP_REASONS: Final = ("Unschedulable", "Pending")
"""Reasons of events about groups and workloads that are no warnings."""
_SETTLED: Final = ("placed", "ended", "missing", "not known")
"""States in which no change lets a pod in."""
_GIVE_OBJECTS: Final = (
    "Give the pods and what holds them: kubectl get pods,nodes,events,podgroups,workloads -A -o yaml."
)


class PodFactSource(Protocol):
    """Source of facts about pods."""

    def build(
        self,
        namespace: str,
        name: str,
        attempt: AttemptSummarized | None,
        devices: list[DeviceLog] | None,
    ) -> DiagnosisFacts:
        """Build the facts about a pod; ``attempt`` is its latest one, with the devices judged in it."""
        ...

    def judge(self, namespace: str, name: str) -> JudgedPod | None:
        """Judge a waiting pod on the objects; None without them."""
        ...

    def list_nodes(self, namespace: str, name: str) -> list[NodeLog]:
        """List the verdicts on nodes behind that judgement."""
        ...

    def list_notes(self, namespace: str, name: str) -> list[InBothLanguages]:
        """List what the pod's owner wrote and no scheduler reads."""
        ...


class RecordedFacts:
    """Facts about pods of a log, of which only the records of their attempts are available."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def build(
        self,
        namespace: str,
        name: str,
        attempt: AttemptSummarized | None,
        devices: list[DeviceLog] | None,
    ) -> DiagnosisFacts:
        return DiagnosisFacts(DEFAULT_CLUSTER, namespace, name, self._now, attempt, is_latest=False, devices=devices)

    def judge(self, namespace: str, name: str) -> JudgedPod | None:  # noqa: ARG002 - the protocol's
        return None

    def list_nodes(self, namespace: str, name: str) -> list[NodeLog]:  # noqa: ARG002 - the protocol's
        return []

    def list_notes(self, namespace: str, name: str) -> list[InBothLanguages]:  # noqa: ARG002 - the protocol's
        return []


class PodAnswer(NamedTuple):
    """The diagnosis of a pod."""

    attempts: int
    started_at: datetime | None
    """The start of the latest attempt; None without one."""
    node: str
    """The chosen node; empty if none was chosen."""
    diagnosis: Diagnosis
    scores: "PodScores | None" = None
    """Scores of the latest attempt's nodes; None where it chose none or its source has no scores."""
    findings: Sequence[Json] = ()
    """Contradictions in the latest attempt's own numbers, as the API writes findings."""
    suggestions: "Suggestions | None" = None
    """Changes after which the pod fits, as far as the objects of its cluster prove any."""


def diagnose_pods(case: ClusterCase, names: Iterable[str]) -> list[PodAnswer]:
    """Diagnose pods of the case (``namespace/name``), in the order given, at the latest time that the case names."""
    source = _choose_source(case)
    return [_diagnose_pod(case, source, name) for name in names]


def explain_pod(case: ClusterCase, name: str) -> PodAnswer:
    """Diagnose one pod, with the verdict on each node, and what would let it in or has placed it."""
    source = _choose_source(case)
    answer = _diagnose_pod(case, source, name)
    namespace, _, pod_name = name.partition("/")
    attempt = case.pods.pods.get(name)
    recorded = _list_recorded_nodes(attempt) if attempt else []
    judged = source.list_nodes(namespace, pod_name)
    update = {
        "nodes": recorded or judged or None,
        "notes": source.list_notes(namespace, pod_name),
        "differences": list(_compare_nodes(recorded, judged)),
    }
    diagnosis = answer.diagnosis.model_copy(update=update)
    suggestions = suggest_for(case, diagnosis)
    scores = _build_scores(attempt) if attempt else None
    is_of_its_node = scores is not None and scores.chosen == answer.node
    return answer._replace(
        diagnosis=add_choice(add_changes(diagnosis, suggestions), scores if is_of_its_node else None),
        scores=scores,
        findings=_list_contradictions(attempt) if attempt else (),
        suggestions=suggestions,
    )


def suggest_for(case: ClusterCase, diagnosis: Diagnosis) -> "Suggestions | None":
    """Suggest what would let a waiting pod in, as far as the objects of its cluster were read."""
    if not case.objects.tables or diagnosis.state in _SETTLED:
        return None
    from engine.cases.simulating import suggest_changes

    return suggest_changes(case.objects, diagnosis, case.ended_at or UNDATED)


def _build_scores(pod: PodInLog) -> "PodScores | None":
    """Build the scores by which the latest attempt chose its node, as the API gives them."""
    summary, _ = pod.find_latest()
    if not summary.chosen or not summary.nodes or not summary.score.any():
        return None
    from engine.summaries.comparison import build_scores

    return build_scores(summary)


def _list_contradictions(pod: PodInLog) -> list[Json]:
    """List the findings about the scheduler's decision: a log that was cut lacks records, which is no mistake of it."""
    from engine.summaries.attempt_audit import IMBALANCE

    return [finding for finding in _list_findings(pod) if finding["finding"] != IMBALANCE]


def _list_findings(pod: PodInLog) -> list[Json]:
    """List the findings about the latest attempt, the pipeline's about a summary too: no pipeline reads this log."""
    from engine.summaries import attempt_audit

    summary, attempt = pod.find_latest()
    return [_write_finding(finding) for finding in (*attempt.findings, *attempt_audit.audit_attempt(summary))]


def _compare_nodes(recorded: Iterable[NodeLog], judged: Iterable[NodeLog]) -> Iterator[NodeDifference]:
    """Compare the verdicts on the nodes that both name."""
    verdicts = {node.name: node for node in judged}
    for node in recorded:
        verdict = verdicts.get(node.name)
        if verdict and verdict.status != node.status:
            yield NodeDifference(node=node.name, scheduler=node, judged=verdict)


def _list_recorded_nodes(pod: PodInLog) -> list[NodeLog]:
    """List the nodes that the latest attempt names; none of one that only counts them."""
    import orjson

    from engine.summaries.answer import encode_schedulerlog

    summary, _ = pod.find_latest()
    if not summary.nodes:
        return []
    return [NodeLog.model_validate(node) for node in orjson.loads(encode_schedulerlog(summary))["filter"]["nodes"]]


def _choose_source(case: ClusterCase) -> PodFactSource:
    now = case.ended_at or UNDATED
    if not case.objects.tables:
        return RecordedFacts(now)
    # Imported late: what reads a log alone judges nothing.
    from engine.cases.pod_facts import CaseFacts

    return CaseFacts(case.objects, now)


def _diagnose_pod(case: ClusterCase, source: PodFactSource, name: str) -> PodAnswer:
    namespace, _, pod_name = name.partition("/")
    pod = case.pods.pods.get(name)
    summary, attempt = pod.find_latest() if pod else (None, None)
    if summary and _is_of_another(case, name, summary):
        summary = attempt = None
    facts = source.build(namespace, pod_name, summary, list(attempt.list_devices()) if attempt else None)
    if summary:
        facts = replace(facts, now=max(facts.now, summary.ended_at or summary.started_at))
    if case.pods.ended_at or case.pods.facts.list_facts():
        facts = _add_log(facts, case, attempt)
    node = (facts.pod.node if facts.pod else "") or (summary.chosen if summary else "") or ""
    started = summary.started_at if summary else None
    diagnosis = diagnose(facts, judged=source.judge(namespace, pod_name))
    return PodAnswer(pod.attempts if pod else 0, started, node, diagnosis)


def _add_log(facts: DiagnosisFacts, case: ClusterCase, attempt: AttemptInLog | None) -> DiagnosisFacts:
    """Add what the log says besides attempts, and when it ended: nothing later is known of it."""
    findings = [*facts.findings, *(_to_evidence(finding) for finding in (attempt.findings if attempt else ()))]
    return replace(facts, logged=case.pods.facts.list_facts(), log_ended_at=case.pods.ended_at, findings=findings)


def _to_evidence(finding: "FindingReported") -> Evidence:
    location = " ".join(filter(None, (finding.node, finding.device)))
    return Evidence("finding", finding.finding, finding.found_at, finding.reader, finding.numbers, location)


def _is_of_another(case: ClusterCase, name: str, summary: AttemptSummarized) -> bool:
    """Tell whether the attempt is of an earlier pod of this name."""
    namespace, _, pod_name = name.partition("/")
    uid = get_text(case.objects.find(kinds.POD, pod_name, namespace), "metadata", "uid")
    return bool(uid and summary.pod.uid and uid != summary.pod.uid)


def write_schedulerlog(pod: PodInLog) -> dict[str, Any]:
    """Write what the API answers about the pod with ``?detail=full``, with the devices of all nodes.

    With ``findings`` if there are any: what the attempt's own numbers contradict.
    """
    import orjson

    from engine.summaries.answer import build_detail, encode_schedulerlog

    summary, attempt = pod.find_latest()
    added: dict[str, Any] = {"detail": build_detail(summary), "devices": list(attempt.list_devices())}
    if findings := _list_findings(pod):
        added["findings"] = findings
    answer: dict[str, Any] = orjson.loads(encode_schedulerlog(summary, additions=added))
    return answer


def _write_finding(finding: "FindingReported") -> Json:
    """Write a finding as the API does, without the pod and attempt that the answer already names."""
    from schemas.codec.records import format_rfc3339

    return {
        "finding": finding.finding,
        "found_at": format_rfc3339(finding.found_at),
        "node": finding.node,
        "device": finding.device,
        "numbers": finding.numbers,
        "evidence": finding.evidence,
    }


def select_pods(case: ClusterCase, pod: str) -> list[str]:
    """Select the pods named ``pod``: ``namespace/name``, or a name in any namespace; empty selects all pods.

    A pod that is gone is selected by its events, if it is named.
    """
    selected = [name for name in list_pod_names(case) if not pod or pod in (name, name.partition("/")[2])]
    if selected or not pod:
        return selected
    names = (f"{namespace}/{name}" for namespace, name in case.objects.list_event_subjects("Pod"))
    return [name for name in names if pod in (name, name.partition("/")[2])]


def list_log_notes(case: ClusterCase) -> list[str]:
    """List the states of the scheduler that its log reports, as sentences."""
    logged = case.pods.facts.list_facts()
    return [
        f"{note.en}." for note in iterate_log_notes(logged, lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S UTC"))
    ]


def explain_emptiness(source: str, case: ClusterCase) -> str:
    """Explain why a case has no pod to answer about, with the events that it has."""
    if not case.objects.tables:
        return explain_absence(source, "", case)
    words = [
        f"{event.kind} {f'{event.namespace}/' if event.namespace else ''}{event.name}: {event.reason}: {event.note}"
        for event in case.objects.list_events()
        if event.is_warning or event.reason in _GROUP_REASONS
    ]
    if queues := list(iterate_queue_answers(case.objects)):
        return f"{source} has no pod. {' '.join(queues)}"
    if not words:
        return f"{source} has no pod, and no event about one. {_GIVE_OBJECTS}"
    listed = "\n  ".join(words[:MAX_SHOWN_EVENTS])
    return f"{source} has no pod. Its events say:\n  {listed}\n{_GIVE_OBJECTS}"


def explain_absence(source: str, pod: str, case: ClusterCase) -> str:
    """Explain why there is no answer about the pod; names the pods with the most similar names."""
    names = list(list_pod_names(case))
    if not names:
        notes = list_log_notes(case) or ["A replica that does not lead, or a log from before the first pod, has none."]
        ended = f" until {case.ended_at:%Y-%m-%d %H:%M:%S} UTC" if case.ended_at else ""
        return (
            f"{source} names no pod that a scheduler tried{ended}. {' '.join(notes)} Read the log of the replica that "
            "leads, of the time at which the pod was tried, at the scheduler's default level or above."
        )
    similar = get_close_matches(pod, names, MAX_SIMILAR_NAMES, cutoff=0.5) or names[:MAX_SIMILAR_NAMES]
    total = "1 pod" if len(names) == 1 else f"{len(names):,} pods"
    return f"{source} has no attempt of a pod {pod}; it has {total}, such as {', '.join(similar)}"


def iterate_queue_answers(objects: CaseObjects) -> Iterator[str]:
    """Iterate over the queues that take no workloads, each with the cause and what to do."""
    for kind in (CLUSTER_QUEUE, LOCAL_QUEUE):
        for (namespace, name), queue in objects.tables.get(kind, {}).items():
            if obstacle := explain_inactive_queue(kind.partition(".")[0], queue):
                held = {"held": write_phrase("held_queue")}
                obstacle = obstacle._replace(words={**obstacle.words, **held})
                remedy = write_remedy(obstacle, namespace or "<namespace>", name)
                yield f"{write_sentence(obstacle).en} {remedy.en}"

"""Answers about the pods of a log, each about the pod's latest attempt. Pure."""

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from ingest.cases.log_pods import LogPods, PodInLog
from schemas.answers.diagnosis import Diagnosis

if TYPE_CHECKING:
    from schemas.events import FindingReported

MAX_SIMILAR_NAMES: Final = 5


class PodAnswer(NamedTuple):
    """The diagnosis of a pod's latest attempt."""

    attempts: int
    started_at: datetime
    """The start of the latest attempt."""
    node: str
    """The chosen node; empty if none was chosen."""
    diagnosis: Diagnosis


def diagnose_pods(pods: Iterable[PodInLog], log_ended_at: datetime) -> list[PodAnswer]:
    """Diagnose each pod, in the order given. ``log_ended_at`` stands for now: the log reports nothing later."""
    return [_diagnose_pod(pod, log_ended_at) for pod in pods]


def _diagnose_pod(pod: PodInLog, log_ended_at: datetime) -> PodAnswer:
    summary, attempt = pod.find_latest()
    now = max(summary.ended_at or summary.started_at, log_ended_at)
    # is_latest is for attempts of a cluster that is watched: here only this attempt's records are available.
    facts = DiagnosisFacts(
        summary.cluster,
        summary.pod.namespace,
        summary.pod.name,
        now,
        summary,
        is_latest=False,
        devices=list(attempt.list_devices()),
    )
    return PodAnswer(pod.attempts, summary.started_at, summary.chosen or "", diagnose(facts))


def write_schedulerlog(pod: PodInLog) -> dict[str, Any]:
    """Write what the API answers about the pod with ``?detail=full``, with the devices of all nodes.

    With ``findings`` if there are any: what the attempt's own numbers contradict.
    """
    import orjson

    from engine.summaries import attempt_audit
    from engine.summaries.answer import build_detail, encode_schedulerlog

    summary, attempt = pod.find_latest()
    added: dict[str, Any] = {"detail": build_detail(summary), "devices": list(attempt.list_devices())}
    # The pipeline's findings about a summary too: no pipeline reads this log.
    if findings := [*attempt.findings, *attempt_audit.audit_attempt(summary)]:
        added["findings"] = [_write_finding(finding) for finding in findings]
    answer: dict[str, Any] = orjson.loads(encode_schedulerlog(summary, additions=added))
    return answer


def _write_finding(finding: "FindingReported") -> dict[str, object]:
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


def explain_absence(log: str, pod: str, pods: LogPods) -> str:
    """Explain why there is no answer about the pod; names the pods with the most similar names."""
    names = list(pods.pods)
    if not names:
        return f"{log} has no attempt of any pod: is it the whole log, at -v=0 or more?"
    similar = get_close_matches(pod, names, MAX_SIMILAR_NAMES, cutoff=0.5) or names[:MAX_SIMILAR_NAMES]
    total = "1 pod" if len(names) == 1 else f"{len(names):,} pods"
    return f"{log} has no attempt of a pod {pod}; it has {total}, such as {', '.join(similar)}"

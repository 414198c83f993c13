"""What a log says of its pods: each with the diagnosis of its latest attempt. Pure."""

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from ingest.log_answers.log_pods import LogPods, PodInLog
from schemas.answers.diagnosis import Diagnosis

SHOWN_NAMES: Final = 5


class PodAnswer(NamedTuple):
    attempts: int
    started_at: datetime
    """When the latest attempt began."""
    node: str
    """The chosen one; empty where none was."""
    diagnosis: Diagnosis


def answers(pods: Iterable[PodInLog], log_ended_at: datetime) -> list[PodAnswer]:
    """In the order of the log. ``log_ended_at`` stands for now: nothing later is known."""
    return [_answer(pod, log_ended_at) for pod in pods]


def _answer(pod: PodInLog, log_ended_at: datetime) -> PodAnswer:
    attempt, devices = pod.latest()
    now = max(attempt.ended_at or attempt.started_at, log_ended_at)
    # Not the latest: nothing is known but this attempt's records.
    facts = DiagnosisFacts(
        attempt.cluster, attempt.pod.namespace, attempt.pod.name, now, attempt, is_latest=False, devices=devices
    )
    return PodAnswer(pod.attempts, attempt.started_at, attempt.chosen or "", diagnose(facts))


def absence(log: str, pod: str, known: LogPods) -> str:
    """Why there is no answer about the pod, with the most similar names."""
    names = list(known.pods)
    if not names:
        return f"{log} has no attempt of any pod: is it the whole log, at -v=0 or more?"
    alike = get_close_matches(pod, names, SHOWN_NAMES, cutoff=0.5) or names[:SHOWN_NAMES]
    pods = "1 pod" if len(names) == 1 else f"{len(names):,} pods"
    return f"{log} has no attempt of a pod {pod}; it has {pods}, such as {', '.join(alike)}"

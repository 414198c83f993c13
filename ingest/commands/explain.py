"""One pod's schedulerlog straight from a reader's events: without Kafka, pipeline or index."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

import orjson
from pydantic import BaseModel

from engine.summaries import attempt_audit
from engine.summaries.answer import detail, schedulerlog_json
from ingest.log_answers.attempt_in_log import AttemptInLog, StatesInLog
from ingest.reading.protocol import EVENT, Counts
from schemas.codec.records import rfc3339
from schemas.events import (
    AttemptEvent,
    AttemptSummarized,
    Event,
    FindingReported,
    NodeStateChanged,
)

MAX_ATTEMPTS: Final = 200
"""Attempts kept for a pod; older ones are dropped."""
# Only to suggest similar names.
MAX_OTHER_PODS: Final = 10_000
SHOWN_PODS: Final = 8


@dataclass(slots=True)
class PodExplanation:
    """Collects the attempts of one pod. ``pod`` is ``namespace/name``, or a name in any namespace."""

    pod: str
    _attempts: dict[str, AttemptInLog] = field(default_factory=dict)
    _states: StatesInLog = field(default_factory=StatesInLog)
    _pods: set[str] = field(default_factory=set)
    _others: dict[str, None] = field(default_factory=dict)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, NodeStateChanged):
                self._states.add(event)
            if not isinstance(event, AttemptEvent):
                continue
            if self._is_wanted(str(event.pod)):
                self._add(event)
            elif len(self._others) < MAX_OTHER_PODS:
                self._others[str(event.pod)] = None

    def _add(self, event: AttemptEvent) -> None:
        self._pods.add(str(event.pod))
        self._attempts.setdefault(event.attempt_id, AttemptInLog()).add(event, self._states)
        # A pending pod is tried thousands of times; the answer is about the latest attempt.
        while len(self._attempts) > MAX_ATTEMPTS:
            # Dictionaries keep their order: the first attempt is the one that began first.
            del self._attempts[next(iter(self._attempts))]

    def _is_wanted(self, pod: str) -> bool:
        return self.pod in (pod, pod.partition("/")[2])

    @property
    def pods(self) -> list[str]:
        """The pods that were found: more than one where several namespaces have a pod of that name."""
        return sorted(self._pods)

    def absence(self, counts: Counts) -> str:
        """Why there is no answer, with the pods that the log has, the most similar names first."""
        if not sum(counts.lines.values()):
            return "the log is empty"
        if not self._others:
            known = "" if counts.lines[EVENT] else ", and has no line that this scheduler prints about a decision"
            return f"the log names no pod at all{known}"
        # The name may be misspelled.
        alike = get_close_matches(self.pod, self._others, SHOWN_PODS, cutoff=0.5)
        shown = list(dict.fromkeys([*alike, *self._others]))[:SHOWN_PODS]
        more = len(self._others) - len(shown)
        rest = f" and {more:,} more" if more else ""
        return f"the log has no attempt of a pod {self.pod}; it has attempts of {', '.join(shown)}{rest}"

    def summaries(self) -> list[AttemptSummarized]:
        """The attempts in the order in which they started."""
        attempts = [attempt.fold.summarize() for attempt in self._attempts.values()]
        return sorted(attempts, key=lambda attempt: attempt.started_at)

    def answer(self, *, is_full: bool) -> str | None:
        """The API's answer to the latest attempt, as JSON text; None where the pod was not found.

        With ``findings`` where there are any. Also with the devices of every node if ``is_full``.
        """
        attempts = self.summaries()
        if not attempts:
            return None
        latest = attempts[-1]
        attempt = self._attempts[latest.attempt_id]
        beside: dict[str, BaseModel | object] = {}
        # Also those that the pipeline finds in a summary.
        if findings := [*attempt.findings, *attempt_audit.findings(latest)]:
            beside["findings"] = [_shown(finding) for finding in findings]
        if is_full:
            beside |= {"detail": detail(latest), "devices": list(attempt.device_rows())}
        json = schedulerlog_json(latest, beside=beside)
        return orjson.dumps(orjson.loads(json), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _shown(finding: FindingReported) -> dict[str, object]:
    """A finding as the API gives it, without what the answer says already."""
    return {
        "finding": finding.finding,
        "found_at": rfc3339(finding.found_at),
        "node": finding.node,
        "device": finding.device,
        "numbers": finding.numbers,
        "evidence": finding.evidence,
    }

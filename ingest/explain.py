"""One pod's schedulerlog straight from a reader's events: without Kafka, pipeline or index."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

import orjson

from ingest.protocol import EVENT, Counts
from schemas.codec.records import decode, encode
from schemas.events import AttemptEvent, AttemptSummarized, Event
from summaries.answer import detail, schedulerlog_json
from summaries.fold import AttemptFold

MAX_ATTEMPTS: Final = 200
"""Of the pod; older ones are dropped."""
# Only to suggest similar names.
MAX_OTHER_PODS: Final = 10_000
SHOWN_PODS: Final = 8


@dataclass(slots=True)
class PodExplanation:
    """Collects the attempts of one pod. ``pod`` is ``namespace/name``, or a name in any namespace."""

    pod: str
    _folds: dict[str, AttemptFold] = field(default_factory=dict)
    _pods: set[str] = field(default_factory=set)
    _others: dict[str, None] = field(default_factory=dict)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if not isinstance(event, AttemptEvent):
                continue
            if self._is_wanted(str(event.pod)):
                self._add(event)
            elif len(self._others) < MAX_OTHER_PODS:
                self._others[str(event.pod)] = None

    def _add(self, event: AttemptEvent) -> None:
        self._pods.add(str(event.pod))
        fold = self._folds.setdefault(event.attempt_id, AttemptFold())
        # Through a record and back, so that the answer is that of a consumer.
        read = decode((record := encode(event)).value, record.headers)
        if isinstance(read, AttemptEvent):
            fold.add(read)
        # A pending pod is tried thousands of times; the answer is about the latest attempt.
        while len(self._folds) > MAX_ATTEMPTS:
            # Dictionaries keep their order: the first fold is the one that began first.
            del self._folds[next(iter(self._folds))]

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
        attempts = [fold.summarize() for fold in self._folds.values()]
        return sorted(attempts, key=lambda attempt: attempt.started_at)

    def answer(self, *, is_full: bool) -> str | None:
        """The API's answer to the latest attempt, as JSON text; None where the pod was not found."""
        attempts = self.summaries()
        if not attempts:
            return None
        latest = attempts[-1]
        json = schedulerlog_json(latest, beside={"detail": detail(latest)} if is_full else None)
        return orjson.dumps(orjson.loads(json), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()

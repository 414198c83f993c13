"""One pod's schedulerlog straight from what a reader tells: without Kafka, pipeline or index."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import orjson

from schemas.events import AttemptEvent, AttemptSummarized, Event
from schemas.records import decode, encode
from summaries.answer import detail, schedulerlog_json
from summaries.fold import AttemptFold

MAX_ATTEMPTS: Final = 200
"""Of the pod; of more, the latest are kept."""


@dataclass(slots=True)
class Explanation:
    """Keeps what is told about one pod. ``pod`` is ``namespace/name``, or a name that may be in any namespace."""

    pod: str
    _folds: dict[str, AttemptFold] = field(default_factory=dict)
    _pods: set[str] = field(default_factory=set)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, AttemptEvent) and self._is_wanted(str(event.pod)):
                self._pods.add(str(event.pod))
                fold = self._folds.setdefault(event.attempt_id, AttemptFold())
                # As a consumer gets it: through the record that would have travelled.
                read = decode((record := encode(event)).value, record.headers)
                if isinstance(read, AttemptEvent):
                    fold.add(read)
                while len(self._folds) > MAX_ATTEMPTS:
                    del self._folds[next(iter(self._folds))]

    def _is_wanted(self, pod: str) -> bool:
        return self.pod in (pod, pod.partition("/")[2])

    @property
    def pods(self) -> list[str]:
        """Which pods were found: more than one where several namespaces have a pod of that name."""
        return sorted(self._pods)

    def summaries(self) -> list[AttemptSummarized]:
        """The attempts in the order in which they started."""
        told = [fold.summarize() for fold in self._folds.values()]
        return sorted(told, key=lambda each: each.started)

    def answer(self, *, is_full: bool) -> str | None:
        """The API's answer to the latest attempt, as JSON text; None where the pod was not found."""
        told = self.summaries()
        if not told:
            return None
        latest = told[-1]
        json = schedulerlog_json(latest, beside={"detail": detail(latest)} if is_full else None)
        return orjson.dumps(orjson.loads(json), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()

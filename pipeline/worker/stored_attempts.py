"""What a writer reads back from the index: attempts that an earlier owner of the partition wrote, or this one before a
restart."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from pipeline.sinks.msearch import Searchable
from pipeline.worker import attempt_documents
from pipeline.worker.minute_counts import PAGE, MinuteKey, attempts_search, rows_search
from pipeline.worker.pod_history import Predecessor, previous_attempt_of
from schemas.codec.records import Rejected
from schemas.documents.attempts import repeated_of, summary_of
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS
from summaries.retries import resolve

logger = logging.getLogger(__name__)

_PODS_A_SEARCH: Final = 1_000


class ReadableIndex(Searchable, Protocol):
    """An index whose documents can be fetched by their id, before a refresh makes them searchable."""

    async def fetch(self, index: str, document_id: str) -> dict[str, object] | None: ...


class StoredMinute(NamedTuple):
    """What the index has of a minute."""

    key: MinuteKey
    attempts: Sequence[Mapping[str, Any]]
    """Documents of the attempts that began in it."""
    rows: Sequence[Mapping[str, Any]]
    """Documents of its counts."""


class StoredAttempts:
    """Reads from the index; waits while it is down."""

    def __init__(self, index: ReadableIndex) -> None:
        self._index = index

    async def summary(self, attempt_id: str, started_at: datetime) -> AttemptSummarized | None:
        """The summary as it is in the index; None where there is none that can be read."""
        found = await self._index.fetch(ATTEMPTS.name(started_at), attempt_id)
        if found is None or not isinstance(document := found.get("_source"), dict):
            return None
        event = repeated_of(document)
        if event is not None and not isinstance(event, Rejected):
            whole = await self.summary(event.repeats, event.repeats_started_at)
            # The attempt with the detail may be past its retention already: then nothing can be merged with it.
            return resolve(event, whole) if whole else None
        summary = summary_of(document)
        if isinstance(summary, Rejected):
            logger.error("the index holds attempt %s in a form that can't be read: %s", attempt_id, summary)
            return None
        return summary

    async def predecessors(self, summaries: Sequence[AttemptSummarized]) -> dict[str, Predecessor]:
        """By attempt id, the previous attempt of the pod."""
        if not summaries:
            return {}
        searches = [attempt_documents.previous_attempt_search(summary) for summary in summaries]
        answers = await self._index.search(searches)
        found = (previous_attempt_of(hits[0].get("_source") or {}) if hits else None for hits in answers)
        return {summary.attempt_id: Predecessor(previous) for summary, previous in zip(summaries, found, strict=True)}

    async def new_pods(self, summaries: Sequence[AttemptSummarized]) -> set[str]:
        """The UIDs of those pods of which the index has no attempt.

        Most pods of a batch are new, and one search finds that out for all of them; a search per pod is needed only for
        the others.
        """
        # Some sources of decisions do not record the UID: without one nothing shows that a pod is new.
        named = [summary for summary in summaries if summary.pod.uid]
        new = {summary.pod.uid for summary in named}
        for start in range(0, len(named), _PODS_A_SEARCH):
            search = attempt_documents.known_pods_search(named[start : start + _PODS_A_SEARCH])
            (hits,) = await self._index.search([search])
            new -= {uid for hit in hits for uid in hit["fields"]["pod_uid"]}
        return new

    async def minutes(self, keys: Sequence[MinuteKey]) -> list[StoredMinute]:
        """What the index has of these minutes, all read side by side: after a takeover they are many."""
        rows = await self._index.search([rows_search(key) for key in keys]) if keys else []
        attempts: dict[MinuteKey, list[dict[str, Any]]] = {key: [] for key in keys}
        unfinished = list(keys)
        while unfinished:
            last_ids = [attempts[key][-1]["attempt_id"] if attempts[key] else "" for key in unfinished]
            pages = await self._index.search(list(map(attempts_search, unfinished, last_ids)))
            for key, page in zip(unfinished, pages, strict=True):
                attempts[key] += [hit["_source"] for hit in page]
            # A page that is not full is the last one of its minute.
            unfinished = [key for key, page in zip(unfinished, pages, strict=True) if len(page) == PAGE]
        return [
            StoredMinute(key, attempts[key], [hit["_source"] for hit in hits])
            for key, hits in zip(keys, rows, strict=True)
        ]

"""The minutes that are being counted. No I/O; bounded in attempts.

A minute that this worker has not counted yet may have attempts in the index, which an earlier owner of the partition
wrote, or this worker before a restart: ``attempts_search`` and ``rows_search`` find them.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from broker.record import Outgoing
from pipeline.sinks.bulk import Document, source
from pipeline.sinks.msearch import Search, in_indices
from schemas.codec.records import encode, rfc3339
from schemas.indices import ATTEMPTS, TRENDS
from schemas.topics import TRENDS as TRENDS_TOPIC
from summaries.trends import Contribution, Minute, PoolOf, Row, contribution_of, records

MAX_ATTEMPTS: Final = 100_000
"""In all minutes that are kept."""
KEPT_SECONDS: Final = 300.0
"""After a minute was written last. For a later record, such as a bind, the minute is read back from the index."""
PAGE: Final = 5_000
"""Attempts in one answer of the index."""
_FIELDS: Final = ("attempt_id", "pod_uid", "namespace", "pod", "status", "counts")


class MinuteKey(NamedTuple):
    """Names a minute. Each partition counts its own, so that no two workers write the same document."""

    partition: int
    started_at: datetime


class MinuteCounts:
    """The minutes of one writer. ``clock`` gives seconds and never goes back."""

    def __init__(
        self,
        pool_of: PoolOf | None,
        max_attempts: int = MAX_ATTEMPTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool_of = pool_of
        self._max_attempts = max_attempts
        self._clock = clock
        self._minutes: OrderedDict[MinuteKey, Minute] = OrderedDict()
        self._changed: set[MinuteKey] = set()
        self._taken: list[MinuteKey] = []
        self._written: OrderedDict[MinuteKey, float] = OrderedDict()
        """When each unchanged minute was last known to be in the index, oldest first."""
        self._attempts = 0

    def __len__(self) -> int:
        return len(self._minutes)

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def unknown(self, wanted: Iterable[MinuteKey]) -> list[MinuteKey]:
        """Those that have to be loaded before they can be counted."""
        return sorted({key for key in wanted if key not in self._minutes})

    def load(self, key: MinuteKey, attempts: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> None:
        """Begin a minute with what the index has of it: documents of its attempts, and of its rows."""
        minute = self._minutes[key] = Minute(key.started_at, key.partition)
        for document in attempts:
            if (contribution := contribution_of(document)) is not None:
                minute.put(contribution)
        minute.published |= {(row["namespace"], row["result"], row["dimension"], row["value"]) for row in rows}
        self._attempts += len(minute.contributions)
        # The worker that wrote the attempts may have been killed before it counted them.
        self._change(key)

    def put(self, partition: int, started_at: datetime, contribution: Contribution) -> None:
        """Count an attempt in its minute."""
        key = minute_of(partition, started_at)
        minute = self._minutes.get(key)
        if minute is None:
            # A rebalance has cleared the minutes meanwhile: the partition's next owner counts the attempt.
            return
        before = len(minute.contributions)
        if minute.put(contribution):
            self._change(key)
            self._attempts += len(minute.contributions) - before
            # The first one is then the minute that changed longest ago: `_shrink` drops that first.
            self._minutes.move_to_end(key)

    def _change(self, key: MinuteKey) -> None:
        self._changed.add(key)
        self._written.pop(key, None)

    def take(self) -> tuple[list[Document], list[Outgoing]]:
        """What has changed since the last call, for the index and the topic.

        To be called when all that the last call gave is written.
        """
        self._note_written()
        self._taken = sorted(self._changed)
        minutes = [self._minutes[key] for key in self._taken]
        self._changed.clear()
        documents = [document for minute in minutes for document in _documents(minute)]
        outgoing = [Outgoing(TRENDS_TOPIC.name, encode(event)) for minute in minutes for event in records(minute)]
        self._shrink()
        return documents, outgoing

    def clear(self) -> None:
        self._minutes.clear()
        self._changed.clear()
        self._taken.clear()
        self._written.clear()
        self._attempts = 0

    def _note_written(self) -> None:
        now = self._clock()
        self._written |= {key: now for key in self._taken if key in self._minutes and key not in self._changed}

    def _shrink(self) -> None:
        # Not at once: documents are found by a search only after the next refresh, and a minute that was dropped before
        # would be read back without its latest attempts.
        before = self._clock() - KEPT_SECONDS
        while self._written and next(iter(self._written.values())) < before:
            self._forget(next(iter(self._written)))
        # One minute is kept whatever its size: dropping what is being counted would read it back at once.
        while self._attempts > self._max_attempts and len(self._minutes) > 1:
            self._forget(next(iter(self._minutes)))

    def _forget(self, key: MinuteKey) -> None:
        self._attempts -= len(self._minutes.pop(key).contributions)
        self._written.pop(key, None)


def minute_of(partition: int, started_at: datetime) -> MinuteKey:
    """The minute that an attempt of this start is counted in."""
    return MinuteKey(partition, started_at.replace(second=0, microsecond=0))


def attempts_search(key: MinuteKey, after: str) -> Search:
    """A page of the attempts of the minute, sorted by id; it begins behind the id ``after``."""
    # A minute lies within one day, and attempts are in the index of their start: one index is enough.
    day = ATTEMPTS.name(key.started_at)
    return _search(day, key, {"size": PAGE, "sort": [{"attempt_id": "asc"}], "_source": list(_FIELDS)}, after)


def rows_search(key: MinuteKey) -> Search:
    """The rows of the minute, by their keys: those that no attempt counts any more have to become 0."""
    fields = ["namespace", "result", "dimension", "value"]
    return _search(TRENDS.name(key.started_at), key, {"size": 10_000, "_source": fields})


def _search(index: str, key: MinuteKey, options: dict[str, Any], after: str = "") -> Search:
    within = {
        "gte": rfc3339(key.started_at),
        "lte": rfc3339(key.started_at.replace(second=59, microsecond=999_999)),
    }
    terms: list[dict[str, Any]] = [{"term": {"partition": key.partition}}, {"range": {"@timestamp": within}}]
    if after:
        # Ids are unique and never change, so a page that begins behind the last id leaves none out.
        terms.append({"range": {"attempt_id": {"gt": after}}})
    return in_indices(index), {"query": {"bool": {"filter": terms}}, "track_total_hits": False} | options


def _documents(minute: Minute) -> Iterator[Document]:
    version, started_at = minute.version, rfc3339(minute.started_at)
    for row in minute.rows():
        yield Document(
            TRENDS.name(minute.started_at), _id(minute, row), source(_document(minute, started_at, row)), version
        )


def _document(minute: Minute, started_at: str, row: Row) -> dict[str, Any]:
    namespace, result, dimension, value = row.key
    return {
        "@timestamp": started_at,
        "partition": minute.partition,
        "namespace": namespace,
        "result": result,
        "dimension": dimension,
        "value": value,
        "attempts": row.attempts,
        "pods": row.pods,
        "nodes": row.nodes,
        "devices": row.devices,
    }


def _id(minute: Minute, row: Row) -> str:
    # The same row gets the same id from any worker, so counting it again replaces it.
    return blake2b(orjson.dumps([rfc3339(minute.started_at), minute.partition, *row.key]), digest_size=16).hexdigest()

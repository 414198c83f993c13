"""The minutes that are being counted: pure but for a memory.

Of a minute that this worker has not counted yet, the index says what its attempts contribute (``questions``): they were
written by an earlier owner of the partition, or by this one before a restart.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from pipeline.sinks.bulk import Document, source
from pipeline.sinks.kafka import Outgoing
from pipeline.sinks.msearch import Search, in_indices
from schemas.codec.records import encode, rfc3339
from schemas.indices import ATTEMPTS, TRENDS
from schemas.topics import TRENDS as TRENDS_TOPIC
from summaries.trends import Contribution, Minute, PoolOf, Row, contribution_of, records

REMEMBERED_ATTEMPTS: Final = 100_000
REMEMBERED_SECONDS: Final = 300.0
"""Since a minute was written last. Who comes later, such as a bind, has it read back."""
PAGE: Final = 5_000
_FIELDS: Final = ("attempt_id", "pod_uid", "namespace", "pod", "status", "counts")


class MinuteKey(NamedTuple):
    partition: int
    started_at: datetime


class MinuteCounts:
    """``clock`` gives seconds and never goes back."""

    def __init__(
        self,
        pool_of: PoolOf | None,
        most: int = REMEMBERED_ATTEMPTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool_of = pool_of
        self._most = most
        self._clock = clock
        self._minutes: OrderedDict[MinuteKey, Minute] = OrderedDict()
        self._changed: set[MinuteKey] = set()
        self._taken: list[MinuteKey] = []
        self._written: OrderedDict[MinuteKey, float] = OrderedDict()
        """When each was last known to be in the index, oldest first; none that has changed since."""
        self._attempts = 0

    def __len__(self) -> int:
        return len(self._minutes)

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def unknown(self, wanted: Iterable[MinuteKey]) -> list[MinuteKey]:
        return sorted({which for which in wanted if which not in self._minutes})

    def load(self, which: MinuteKey, attempts: Iterable[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> None:
        """Begin with what the index has of a minute: documents of its attempts, and of its rows."""
        minute = self._minutes[which] = Minute(which.started_at, which.partition)
        for document in attempts:
            if (known := contribution_of(document)) is not None:
                minute.put(known)
        minute.published |= {(row["namespace"], row["result"], row["dimension"], row["value"]) for row in rows}
        self._attempts += len(minute.contributions)
        # Whoever wrote the attempts may have ended before it counted them.
        self._change(which)

    def put(self, partition: int, started_at: datetime, each: Contribution) -> None:
        """Count an attempt in its minute. A minute that was forgotten meanwhile is counted by who has it now."""
        which = minute_of(partition, started_at)
        minute = self._minutes.get(which)
        if minute is None:
            return
        before = len(minute.contributions)
        if minute.put(each):
            self._change(which)
            self._attempts += len(minute.contributions) - before
            self._minutes.move_to_end(which)

    def _change(self, which: MinuteKey) -> None:
        self._changed.add(which)
        self._written.pop(which, None)

    def take(self) -> tuple[list[Document], list[Outgoing]]:
        """What has changed since the last time, for the index and the topic; what was taken then is written by now."""
        self._note_written()
        self._taken = sorted(self._changed)
        minutes = [self._minutes[which] for which in self._taken]
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
        self._written |= {which: now for which in self._taken if which in self._minutes and which not in self._changed}

    def _shrink(self) -> None:
        # Only what was written a while ago: what the index took just now it may not show before its next refresh.
        before = self._clock() - REMEMBERED_SECONDS
        while self._written and next(iter(self._written.values())) < before:
            self._forget(next(iter(self._written)))
        while self._attempts > self._most and len(self._minutes) > 1:
            self._forget(next(iter(self._minutes)))

    def _forget(self, which: MinuteKey) -> None:
        self._attempts -= len(self._minutes.pop(which).contributions)
        self._written.pop(which, None)


def minute_of(partition: int, started_at: datetime) -> MinuteKey:
    return MinuteKey(partition, started_at.replace(second=0, microsecond=0))


def attempts_search(which: MinuteKey, after: str) -> Search:
    """The attempts of the minute behind the id ``after``, a page of them, sorted by id."""
    day = ATTEMPTS.name(which.started_at)
    return _search(day, which, {"size": PAGE, "sort": [{"attempt_id": "asc"}], "_source": list(_FIELDS)}, after)


def rows_search(which: MinuteKey) -> Search:
    wanted = ["namespace", "result", "dimension", "value"]
    return _search(TRENDS.name(which.started_at), which, {"size": 10_000, "_source": wanted})


def _search(index: str, which: MinuteKey, how: dict[str, Any], after: str = "") -> Search:
    within = {
        "gte": rfc3339(which.started_at),
        "lte": rfc3339(which.started_at.replace(second=59, microsecond=999_999)),
    }
    terms: list[dict[str, Any]] = [{"term": {"partition": which.partition}}, {"range": {"@timestamp": within}}]
    if after:
        terms.append({"range": {"attempt_id": {"gt": after}}})
    return in_indices(index), {"query": {"bool": {"filter": terms}}, "track_total_hits": False} | how


def _documents(minute: Minute) -> Iterator[Document]:
    version, began = minute.version, rfc3339(minute.started_at)
    for row in minute.rows():
        yield Document(TRENDS.name(minute.started_at), _id(minute, row), source(_document(minute, began, row)), version)


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
    return blake2b(orjson.dumps([rfc3339(minute.started_at), minute.partition, *row.key]), digest_size=16).hexdigest()

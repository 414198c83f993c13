"""Published state that the writer compares with: the latest attempts of each pod, and full summaries.

Of a partition's histories the worker reads where each one is on the topic when the first attempt of the partition is
published, and drops that when the partition is revoked: the next owner reads it again. The histories that were written
last are in memory as well; an older one is read from the topic when its pod is tried again. Summaries come from memory,
else from the topic of attempts.
"""

import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

import orjson

from engine.summaries.retries import pick_unshared_texts
from pipeline.worker.batch import HistoryKey, estimate_size
from pipeline.worker.pod_positions import PodPosition, PodPositions, PositionsReader
from runtime.bounded_cache import BoundedCache
from runtime.telemetry.logs import identify_subject
from schemas.codec.chunking import join
from schemas.codec.records import Rejected, decode, decode_value
from schemas.events import (
    AttemptSummarized,
    PodHistoryChanged,
    PublishedAttempt,
    PublishedReport,
    Report,
    SummaryLocation,
)
from schemas.ids import count_microseconds
from schemas.topics import ATTEMPTS, POD_HISTORIES

logger = logging.getLogger(__name__)

CACHE_BYTES: Final = 64 * 2**20
"""Memory for the JSON of the histories that were written last, of some 8,700 pods with seven attempts each."""
RECENT: Final = 500
"""Histories that are also in memory as objects, of some 15 kB: of the pods that are tried again and again."""
_ENTRY_BYTES: Final = 400
"""Memory of an entry of the cache besides its JSON."""
_PROGRESS: Final = re.compile(
    rb'"published_until":(?P<until>-?\d+),"attempts":\[\{"attempt_id":"[^"\\]*","pod_uid":"[^"\\]*",'
    rb'"started_at":"(?P<began>[^"\\]+)"'
)
"""Fields of a history in the order in which it is encoded: a worker looks at each of its partitions' histories at its
start, and decoding one takes ten times as long."""
_KEPT_MS: Final = int(POD_HISTORIES.retention.total_seconds() * 1000)


class ReadableTopics(Protocol):
    """The topics: ``runtime.kafka.reader.TopicReader``."""

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None: ...
    async def read_offsets(self, topic: str, partition: int, offsets: list[int]) -> list[Any]: ...


class _Cached(NamedTuple):
    value: bytes
    offset: int


class _Recent(NamedTuple):
    history: PodHistoryChanged
    offset: int


class PodHistories:
    """The histories of the assigned partitions. ``clock`` gives seconds and never goes back."""

    def __init__(
        self, topics: ReadableTopics, clock: Callable[[], float] = time.monotonic, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._partitions: dict[int, PodPositions] = {}
        self._cache: BoundedCache[HistoryKey, _Cached] = BoundedCache(
            max_bytes=cache_bytes, size_of=lambda cached: len(cached.value) + _ENTRY_BYTES
        )
        self._recent: BoundedCache[HistoryKey, _Recent] = BoundedCache(RECENT)

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    async def read(self, keys: Collection[HistoryKey]) -> dict[HistoryKey, PodHistoryChanged]:
        """Read the histories of these pods, without the pods that have none; waits while the broker is down."""
        await self._load({key.partition for key in keys})
        keys_of = defaultdict[int, list[HistoryKey]](list)
        for key in keys:
            keys_of[key.partition].append(key)
        histories: dict[HistoryKey, PodHistoryChanged] = {}
        for partition, wanted in keys_of.items():
            # `clear` may have dropped it meanwhile: then nothing of this is published.
            if positions := self._partitions.get(partition):
                located = positions.find(wanted)
                recent = self._find_recent(located)
                histories |= recent
                elsewhere = {key: position for key, position in located.items() if key not in recent}
                for key, value in (await self._read_values(elsewhere)).items():
                    history = decode_value(PodHistoryChanged, value)
                    if isinstance(history, Rejected):
                        logger.error("the history of %s can't be read, a new one begins: %s", key.key, history)
                    else:
                        histories[key] = history
        return histories

    def put(self, key: HistoryKey, history: PodHistoryChanged, value: bytes, offset: int) -> None:
        """Note a history that was written at this offset; ``value`` is its JSON."""
        if (positions := self._partitions.get(key.partition)) is None:
            return
        now = int(self._clock() * 1000)
        # The topic forgets them after as long: a worker that reads them again should know no less than this one. Not
        # by the time of day: a clock that is set would let all of them look old, or those written meanwhile.
        began_us = count_microseconds(history.attempts[0].started_at)
        positions.put(key, PodPosition(offset, history.published_until, began_us, now), now - _KEPT_MS)
        # Copied: orjson's bytes keep the room that they might have needed, eight to sixteen times as much.
        self._cache.put(key, _Cached(bytes(memoryview(value)), offset))
        self._recent.put(key, _Recent(history, offset))

    def clear(self) -> None:
        """Forget everything: the partitions are being reassigned."""
        self._partitions = {}
        self._cache.clear()
        self._recent.clear()

    async def _load(self, partitions: Iterable[int]) -> None:
        """Read the positions of partitions that have not been read yet."""
        if not (missing := set(partitions) - self._partitions.keys()):
            return
        readers = {number: PositionsReader() for number in missing}
        assigned = self._partitions
        began = time.monotonic()
        await self._topics.read_all(POD_HISTORIES.name, missing, lambda record: self._take(readers, record))
        loaded = {number: reader.build() for number, reader in readers.items()}
        seconds, count = time.monotonic() - began, sum(map(len, loaded.values()))
        logger.info("read %d pod histories of partitions %s in %.1f s", count, sorted(missing), seconds)
        # `clear` has replaced it meanwhile: another worker may be writing these histories now.
        if assigned is self._partitions:
            assigned |= loaded

    def _take(self, readers: Mapping[int, PositionsReader], record: Any) -> None:
        key = HistoryKey(record.partition, record.key.decode(errors="replace"))
        readers[record.partition].add(key, _locate(record, int(self._clock() * 1000)))
        if record.value is not None:
            self._cache.put(key, _Cached(record.value, record.offset))

    def _find_recent(self, positions: Mapping[HistoryKey, PodPosition]) -> dict[HistoryKey, PodHistoryChanged]:
        """Find those of the histories at these positions that are in memory as objects."""
        recent = ((key, self._recent.get(key), position.offset) for key, position in positions.items())
        return {key: entry.history for key, entry, offset in recent if entry and entry.offset == offset}

    async def _read_values(self, positions: Mapping[HistoryKey, PodPosition]) -> dict[HistoryKey, bytes]:
        """Read the JSON of histories at these positions of one partition, from memory or from the topic."""
        values: dict[HistoryKey, bytes] = {}
        elsewhere: dict[int, HistoryKey] = {}
        for key, position in positions.items():
            cached = self._cache.get(key)
            if cached and cached.offset == position.offset:
                values[key] = cached.value
            else:
                elsewhere[position.offset] = key
        if elsewhere:
            partition = next(iter(positions)).partition
            for record in await self._topics.read_offsets(POD_HISTORIES.name, partition, sorted(elsewhere)):
                key = elsewhere[record.offset]
                # Positions are kept by a hash of the key, which two pods in 10^13 pairs share.
                if record.value is not None and record.key.decode(errors="replace") == key.key:
                    values[key] = record.value
        return values


def _locate(record: Any, now_ms: int) -> PodPosition:
    """Locate a history that is on the topic; one that says nothing takes the place of any, and any takes its place."""
    try:
        if progress := _PROGRESS.search(record.value):
            began = datetime.fromisoformat(progress["began"].decode())
            return PodPosition(record.offset, int(progress["until"]), count_microseconds(began), now_ms)
        history = orjson.loads(record.value)
        began = datetime.fromisoformat(history["attempts"][0]["started_at"])
        return PodPosition(record.offset, int(history["published_until"]), count_microseconds(began), now_ms)
    except (TypeError, LookupError, ValueError):
        return PodPosition.build_of_nothing(record.offset, now_ms)


WITHOUT_COMPARISON: Final[dict[str, Any]] = {
    "episode": "", "episode_started_at": None, "changes": [], "first_judged_at": None,
    "attempts": 0, "wait": None,
}  # fmt: skip
"""Fields that the worker adds to a summary when it publishes it, with the values they have before."""


class PublishedSummaries:
    """Cache of the summaries that were published last, of at most ``max_bytes``."""

    def __init__(self, topics: ReadableTopics, max_bytes: int) -> None:
        self._topics = topics
        self._cache: BoundedCache[str, AttemptSummarized] = BoundedCache(max_bytes=max_bytes, size_of=estimate_size)

    def __len__(self) -> int:
        return len(self._cache)

    def get_cached(self, attempt_id: str) -> AttemptSummarized | None:
        return self._cache.get(attempt_id)

    def put(self, summary: AttemptSummarized) -> None:
        self._cache.put(summary.attempt_id, summary)

    def clear(self) -> None:
        self._cache.clear()

    async def load(self, attempt: PublishedAttempt) -> AttemptSummarized | None:
        """Load the published summary of an attempt; None where the topic no longer has it."""
        full_summary = await self.load_at(attempt.whole)
        if full_summary is None or full_summary.attempt_id == attempt.attempt_id:
            return full_summary
        names = ("attempt_id", "started_at", "version", "status", "ended_at")
        reports = [_restore_report(report, full_summary) for report in attempt.reports]
        fields = {name: getattr(attempt, name) for name in names} | pick_unshared_texts(attempt)
        return full_summary.model_copy(update=fields | {"reports": reports})

    async def load_at(self, location: SummaryLocation) -> AttemptSummarized | None:
        """Load the summary at this location; None where the topic no longer has it."""
        if (get_cached := self._cache.get(location.attempt_id)) is not None:
            return get_cached
        records = await self._topics.read_offsets(ATTEMPTS.name, location.partition, location.offsets)
        parts = [decode(record.value, record.headers) for record in records]
        mine = [
            part for part in parts if isinstance(part, AttemptSummarized) and part.attempt_id == location.attempt_id
        ]
        try:
            full_summary = join(mine)
        except ValueError as error:
            # Past its retention, or the topic was deleted and made again.
            logger.warning(
                "attempt %s is not on its topic any more: %s", location.attempt_id, error,
                extra=identify_subject(attempt=location.attempt_id),
            )  # fmt: skip
            return None
        # What the worker itself added when it published the summary.
        return full_summary.model_copy(update=WITHOUT_COMPARISON)


def _restore_report(entry: PublishedReport, full_summary: AttemptSummarized) -> Report:
    """Restore a repetition's report from the report of the same source in the repeated summary."""
    original = next((report for report in full_summary.reports if report.source == entry.source), None)
    names = ("source", "attempt_id", "started_at", "ended_at", "bind_ended_at")
    fields = {name: getattr(entry, name) for name in names}
    return original.model_copy(update=fields) if original else Report(**fields)

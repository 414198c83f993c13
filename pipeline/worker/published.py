"""Published state that the writer compares with: the latest attempts of each pod, and full summaries.

A partition's histories are read from the topic when the first attempt of the partition is published, and dropped when
the partition is revoked: its next owner reads them again. Summaries come from memory, else from the topic of attempts.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

import orjson

from engine.summaries.retries import pick_unshared_texts
from pipeline.worker.batch import estimate_size
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
from schemas.topics import ATTEMPTS, POD_HISTORIES

logger = logging.getLogger(__name__)

DECODED: Final = 5_000
"""Limit of decoded histories, of the pods that were published last."""
_KEPT_MS: Final = int(POD_HISTORIES.retention.total_seconds() * 1000)


class ReadableTopics(Protocol):
    """The topics: ``runtime.kafka.reader.TopicReader``."""

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None: ...
    async def read_offsets(self, topic: str, partition: int, offsets: list[int]) -> list[Any]: ...


class _Stored(NamedTuple):
    value: bytes
    written_ms: int


_Pods = OrderedDict[str, _Stored]
"""Stored histories by key, the one that was written longest ago first."""


class PodHistories:
    """The histories of the assigned partitions. ``clock`` gives seconds since 1970."""

    def __init__(self, topics: ReadableTopics, clock: Callable[[], float] = time.time) -> None:
        self._topics = topics
        self._clock = clock
        self._partitions: dict[int, _Pods] = {}
        # A hundred thousand histories take 100 MB as bytes, and ten times as much as objects.
        self._decoded: BoundedCache[tuple[int, str], PodHistoryChanged] = BoundedCache(DECODED)

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    async def load(self, partitions: Iterable[int]) -> None:
        """Read the histories of partitions that have not been read yet; waits while the broker is down."""
        missing = set(partitions) - self._partitions.keys()
        if not missing:
            return
        loaded: dict[int, _Pods] = {number: OrderedDict() for number in missing}
        assigned = self._partitions
        began = time.monotonic()
        await self._topics.read_all(POD_HISTORIES.name, missing, lambda record: _take(loaded[record.partition], record))
        seconds, count = time.monotonic() - began, sum(map(len, loaded.values()))
        logger.info("read %d pod histories of partitions %s in %.1f s", count, sorted(missing), seconds)
        # `clear` has replaced it meanwhile: another worker may be writing these histories now.
        if assigned is self._partitions:
            assigned |= loaded

    def get(self, partition: int, key: str) -> PodHistoryChanged | None:
        if (decoded := self._decoded.get((partition, key))) is not None:
            return decoded
        pods = self._partitions.get(partition)
        if pods is None or (stored := pods.get(key)) is None:
            return None
        history = decode_value(PodHistoryChanged, stored.value)
        if isinstance(history, Rejected):
            logger.error("the history of %s can't be read, a new one begins: %s", key, history)
            return None
        return history

    def put(self, partition: int, history: PodHistoryChanged, value: bytes) -> None:
        """Note a history that was written; ``value`` is its JSON."""
        pods = self._partitions.get(partition)
        if pods is None:
            return
        now = int(self._clock() * 1000)
        # Copied: orjson's bytes keep the room that they might have needed, eight to sixteen times as much.
        pods[history.key] = _Stored(bytes(memoryview(value)), now)
        pods.move_to_end(history.key)
        self._decoded.put((partition, history.key), history)
        # The topic forgets them after as long: a worker that reads them again must know no less than this one.
        while (oldest := next(iter(pods.items())))[1].written_ms < now - _KEPT_MS:
            del pods[oldest[0]]
            self._decoded.pop((partition, oldest[0]))

    def clear(self) -> None:
        """Forget everything: the partitions are being reassigned."""
        self._partitions = {}
        self._decoded.clear()


def _take(pods: _Pods, record: Any) -> None:
    key = record.key.decode(errors="replace")
    stored = pods.get(key)
    # A worker that was stopped for longer than its session may write once more, behind the one that took over.
    if stored is not None and _is_older(record.value, stored.value):
        return
    if record.value is None:
        pods.pop(key, None)
    else:
        pods[key] = _Stored(record.value, record.timestamp)
        pods.move_to_end(key)


def _is_older(value: bytes | None, stored: bytes) -> bool:
    """Tell whether ``value`` holds less than the value that was written before it."""
    try:
        history, previous = (orjson.loads(text or b"null") for text in (value, stored))
        begins = [datetime.fromisoformat(entry["attempts"][0]["started_at"]) for entry in (history, previous)]
        # By both: where the topic of decisions was deleted and made again, its offsets begin at 0.
        return bool(history["published_until"] < previous["published_until"] and begins[0] <= begins[1])
    except (TypeError, LookupError, ValueError):
        return False


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

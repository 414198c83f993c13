"""The latest attempts of each pod, which its next one is compared with: the worker's state, kept on a topic.

A partition's histories are read from the topic when the first attempt of the partition is published, and dropped when
the partition is revoked: its next owner reads them again.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

import orjson

from runtime.bounded_cache import BoundedCache
from schemas.codec.records import Rejected, decode_value
from schemas.events import PodHistoryChanged
from schemas.topics import POD_HISTORIES

logger = logging.getLogger(__name__)

DECODED: Final = 5_000
"""Histories that are kept decoded, of the pods that were published last."""
_KEPT_MS: Final = int(POD_HISTORIES.retention.total_seconds() * 1000)


class ReadableTopics(Protocol):
    """The topics: ``runtime.kafka.reader.TopicReader``."""

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None: ...
    async def at(self, topic: str, partition: int, offsets: list[int]) -> list[Any]: ...


class _Stored(NamedTuple):
    value: bytes
    written_ms: int


_Pods = OrderedDict[str, _Stored]
"""By the key of the history; the one that was written longest ago first."""


class PodHistories:
    """The histories of the assigned partitions. ``clock`` gives seconds since 1970."""

    def __init__(self, topics: ReadableTopics, clock: Callable[[], float] = time.time) -> None:
        self._topics = topics
        self._clock = clock
        self._partitions: dict[int, _Pods] = {}
        # As bytes a hundred thousand of them take 100 MB; as objects, ten times as much.
        self._decoded: BoundedCache[tuple[int, str], PodHistoryChanged] = BoundedCache(DECODED)

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    async def load(self, partitions: Iterable[int]) -> None:
        """Read the histories of those partitions that have not been read yet; waits while the broker is down."""
        missing = set(partitions) - self._partitions.keys()
        if not missing:
            return
        loaded: dict[int, _Pods] = {number: OrderedDict() for number in missing}
        known = self._partitions
        began = time.monotonic()
        await self._topics.read_all(POD_HISTORIES.name, missing, lambda record: _take(loaded[record.partition], record))
        seconds, count = time.monotonic() - began, sum(map(len, loaded.values()))
        logger.info("read %d pod histories of partitions %s in %.1f s", count, sorted(missing), seconds)
        # `clear` has replaced it meanwhile: another worker may be writing these histories now.
        if known is self._partitions:
            known |= loaded

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
    known = pods.get(key)
    # A worker that was stopped for longer than its session may write once more, behind the one that took over.
    if known is not None and _is_older(record.value, known.value):
        return
    if record.value is None:
        pods.pop(key, None)
    else:
        pods[key] = _Stored(record.value, record.timestamp)
        pods.move_to_end(key)


def _is_older(value: bytes | None, known: bytes) -> bool:
    """Does ``value`` know less than what was written before it?"""
    try:
        one, other = (orjson.loads(text or b"null") for text in (value, known))
        begins = [datetime.fromisoformat(history["attempts"][0]["started_at"]) for history in (one, other)]
        # By both: where the topic of decisions was deleted and made again, its offsets begin at 0.
        return bool(one["published_until"] < other["published_until"] and begins[0] <= begins[1])
    except (TypeError, LookupError, ValueError):
        return False

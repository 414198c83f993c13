"""Topics in memory, and records to feed the agent with. They keep what the real ones promise, no more."""

import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any
from zlib import crc32

from engine.summaries.retries import resolve
from runtime.kafka.record import Record, RecordPosition
from schemas.codec.chunking import join
from schemas.codec.records import EncodedRecord, decode, encode
from schemas.events import AttemptRepeated, AttemptSummarized, Event
from schemas.topics import ATTEMPTS, DECISIONS

PARTITIONS = 3
TAKEN_AT_MS = 1_795_250_000_000
"""Time at which the broker took the first record of a log; a second later each of the others."""


class FakeTopics:
    """Topics in memory: a record has a partition and an offset, and can be read."""

    def __init__(self) -> None:
        self.sent: list[EncodedRecord] = []
        self._logs: dict[tuple[str, int], list[Record]] = defaultdict(list)

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        return [self._append(entry) for entry in outgoing]

    def _append(self, entry: EncodedRecord) -> RecordPosition:
        self.sent.append(entry)
        number = crc32(entry.key or b"") % PARTITIONS if entry.partition is None else entry.partition
        log = self._logs[entry.topic, number]
        log.append(Record(entry.topic, number, len(log), entry.key, entry.value, entry.headers, TAKEN_AT_MS))
        return RecordPosition(number, len(log) - 1)

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
        for number in partitions:
            for record in list(self._logs[topic, number]):
                take(record)

    async def read_offsets(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Any]:
        return [record for record in self._logs[topic, partition] if record.offset in offsets]

    def list_sent(self, topic: str) -> list[EncodedRecord]:
        return [entry for entry in self.sent if entry.topic == topic]

    def list_events(self, topic: str) -> list[Any]:
        return [decode(entry.value, entry.headers) for entry in self.list_sent(topic)]


def list_published(topics: FakeTopics) -> dict[str, AttemptSummarized]:
    """Return by attempt id what a reader of the attempts knows in the end: the greatest version, complete."""
    parts: dict[tuple[str, int], dict[int, AttemptSummarized]] = defaultdict(dict)
    repetitions: dict[str, AttemptRepeated] = {}
    for event in topics.list_events(ATTEMPTS.name):
        if isinstance(event, AttemptRepeated):
            repetitions[event.attempt_id] = event
        else:
            parts[event.attempt_id, event.version][event.part] = event
    # Sorted, so that of one attempt the greatest version is put last.
    summaries = {name: join(list(parts[name, version].values())) for name, version in sorted(parts)}
    latest = [
        retry for name, retry in repetitions.items() if name not in summaries or summaries[name].version < retry.version
    ]
    return summaries | {retry.attempt_id: resolve(retry, summaries[retry.repeats]) for retry in latest}


class Log:
    """One partition of the decisions: gives records with rising offsets and hears which are acknowledged."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        self.acknowledged: list[int] = []
        self.records: list[Record] = []
        self._offsets = itertools.count()

    def append(self, *events: Event) -> None:
        for event in events:
            key, value, headers, *_ = encode(event)
            self.append_bytes(key, value, headers)

    def append_bytes(self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> Record:
        offset = next(self._offsets)
        self.records.append(
            Record(
                DECISIONS.name, self.partition, offset, key, value, headers, TAKEN_AT_MS + 1_000 * offset,
                lambda: self.acknowledged.append(offset),
            )
        )  # fmt: skip
        return self.records[-1]


async def stream(records: Iterable[Record]) -> AsyncIterator[Record]:
    for record in records:
        yield record


def _ignore() -> None:
    """Ignore that a record is acknowledged."""

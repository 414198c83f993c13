"""The agent: records of shipped lines in, events published, records acknowledged. A plain coroutine.

A record is acknowledged when everything that began with it or before it is published: after a crash the unfinished is
read again and told with the same ids. Acknowledgement goes in the order of offsets.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker.record import Record
from ingest.protocol import NOISE, UNKNOWN, Counts
from ingest.raw_logs.container_readers import ContainerReaders
from ingest.raw_logs.shippers import lines_of_record
from schemas.events import Event

log = logging.getLogger(__name__)


class Sink(Protocol):
    async def send(self, events: Sequence[Event]) -> None:
        """Return when they can't be lost any more."""
        ...


@dataclass(slots=True)
class _Partition:
    streams: ContainerReaders = field(default_factory=ContainerReaders)
    unacknowledged: deque[Record] = field(default_factory=deque)
    is_ours: bool = True

    def acknowledge(self) -> None:
        """All records that nothing waits for any more."""
        needed = self.streams.needs()
        while self.unacknowledged and (needed is None or self.unacknowledged[0].offset < needed):
            record = self.unacknowledged.popleft()
            if self.is_ours:
                record.acknowledge()


class RawLogs:
    """``strange`` counts the records that are no shipper's JSON: they are kept in the topic, and passed over."""

    def __init__(self, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink, self._clock = sink, clock
        self._partitions: dict[int, _Partition] = {}
        self._before: Counter[tuple[str, str]] = Counter()
        """The lines of partitions that others read now."""
        self.strange = 0
        self._turn = asyncio.Lock()
        """What is being published must not be acknowledged by the other of the two that acknowledge."""

    @property
    def unacknowledged(self) -> int:
        return sum(len(each.unacknowledged) for each in self._partitions.values())

    def lines(self) -> dict[tuple[str, str], int]:
        """By reader and outcome; lines of no scheduler count as ``other`` of no reader."""
        total = Counter(self._before)
        for partition in self._partitions.values():
            total.update(partition.streams.lines)
        return total

    def counts(self) -> Counts:
        """The same as every reader has it; what is none of ours is noise."""
        counts = Counts()
        for (_, outcome), count in self.lines().items():
            counts.lines[outcome if outcome in counts.lines else NOISE] += count
        counts.lines[UNKNOWN] += self.strange
        return counts

    async def read(self, records: AsyncIterable[Record]) -> None:
        """Take in records for ever."""
        async for record in records:
            async with self._turn:
                await self._take(record)

    async def settle(self) -> None:
        """Tell what silent containers left open; to be called every now and then."""
        async with self._turn:
            for partition in list(self._partitions.values()):
                if events := list(partition.streams.settle(self._clock())):
                    await self._sink.send(events)
                partition.acknowledge()

    def forget(self) -> None:
        """Partitions are being given out anew: what was not acknowledged will be read again, by whoever has it."""
        self._before = Counter(self.lines())
        for partition in self._partitions.values():
            partition.is_ours = False
        self._partitions.clear()

    async def _take(self, record: Record) -> None:
        partition = self._partitions.setdefault(record.partition, _Partition())
        if partition.unacknowledged and record.offset <= partition.unacknowledged[-1].offset:
            return  # It was read before, and is waiting.
        partition.unacknowledged.append(record)
        if events := self._events(partition, record):
            await self._sink.send(events)
        partition.acknowledge()

    def _events(self, partition: _Partition, record: Record) -> list[Event]:
        found = lines_of_record(record.value or b"")
        if found is None:
            self.strange += 1
            log.info("partition %d, offset %d: no shipper's JSON", record.partition, record.offset)
            return []
        try:
            return list(partition.streams.take(found, record.offset, self._clock()))
        except Exception:
            # One line that a reader fails on must not stop the logs of everybody else.
            log.exception("a defect of a reader: partition %d, offset %d", record.partition, record.offset)
            return []

"""The agent: reads records of shipped lines, publishes the events, acknowledges the records. A plain coroutine.

A record is acknowledged, in the order of offsets, when everything that began in it or before it is published. After a
crash the records of open attempts are read again, and give events with the same ids.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field

from ingest.readers.raw_logs.container_readers import ContainerReaders
from ingest.readers.raw_logs.shippers import parse_record
from ingest.reading.protocol import NOISE, UNKNOWN, Counts, Sink
from ingest.reading.trusted_containers import TrustedContainers
from runtime.kafka.record import Record
from schemas.events import DEFAULT_CLUSTER, Event

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Partition:
    readers: ContainerReaders
    unacknowledged: deque[Record] = field(default_factory=deque)
    is_assigned: bool = True
    """False after Kafka has given the partition to another process."""

    def acknowledge(self) -> None:
        """Acknowledge all records that nothing needs any more."""
        needed = self.readers.find_needed()
        while self.unacknowledged and (needed is None or self.unacknowledged[0].offset < needed):
            record = self.unacknowledged.popleft()
            if self.is_assigned:
                record.acknowledge()


class RawLogs:
    """``strange`` counts the records that are not the JSON of a shipper: they are skipped, and stay in the topic."""

    def __init__(
        self,
        sink: Sink,
        clock: Callable[[], float] = time.monotonic,
        *,
        trusted: TrustedContainers,
        cluster: str = DEFAULT_CLUSTER,
    ) -> None:
        """Start without partitions. ``trusted``: believed containers. ``cluster``: for lines that name none."""
        self._trusted = trusted
        self._sink, self._clock, self._cluster = sink, clock, cluster
        self._partitions: dict[int, _Partition] = {}
        self._counts_of_revoked: Counter[tuple[str, str]] = Counter()
        """The counts of partitions that were revoked."""
        self.strange = 0
        self._lock = asyncio.Lock()
        """``read`` and ``settle`` both acknowledge: neither may do so while the other is still publishing."""

    @property
    def unacknowledged(self) -> int:
        return sum(len(partition.unacknowledged) for partition in self._partitions.values())

    def count_lines(self) -> dict[tuple[str, str], int]:
        """Count the lines by source and outcome; lines of logs that are not read are ``other`` of source ``""``."""
        total = Counter(self._counts_of_revoked)
        for partition in self._partitions.values():
            total.update(partition.readers.lines)
        return total

    def to_counts(self) -> Counts:
        """Convert to the counts that all readers have; lines of logs that are not read count as noise."""
        counts = Counts()
        for (_, outcome), count in self.count_lines().items():
            counts.lines[outcome if outcome in counts.lines else NOISE] += count
        counts.lines[UNKNOWN] += self.strange
        return counts

    async def read(self, records: AsyncIterable[Record]) -> None:
        """Read records until the task is cancelled."""
        async for record in records:
            async with self._lock:
                await self._take(record)

    async def settle(self) -> None:
        """Publish the open attempts of silent containers; to be called every few seconds."""
        async with self._lock:
            for partition in list(self._partitions.values()):
                if events := list(partition.readers.settle(self._clock())):
                    await self._sink.send(events)
                # Also without new events: a closed log needs its records no more.
                partition.acknowledge()

    def forget(self) -> None:
        """Forget all partitions, because Kafka reassigns them: their next owner reads unacknowledged records again."""
        self._counts_of_revoked = Counter(self.count_lines())
        for partition in self._partitions.values():
            partition.is_assigned = False
        self._partitions.clear()

    async def _take(self, record: Record) -> None:
        partition = self._partitions.get(record.partition)
        if partition is None:
            partition = self._partitions[record.partition] = _Partition(ContainerReaders(self._trusted, self._cluster))
        if partition.unacknowledged and record.offset <= partition.unacknowledged[-1].offset:
            return  # it was read before, and waits already
        partition.unacknowledged.append(record)
        if events := self._read_events(partition, record):
            await self._sink.send(events)
        partition.acknowledge()

    def _read_events(self, partition: _Partition, record: Record) -> list[Event]:
        shipped_lines = parse_record(record.value or b"")
        if shipped_lines is None:
            self.strange += 1
            log.info("partition %d, offset %d: not the JSON of a shipper", record.partition, record.offset)
            return []
        try:
            return list(partition.readers.take(shipped_lines, record.offset, self._clock()))
        except Exception:
            # A defect that one line reveals must not stop the logs of all other containers.
            log.exception("a defect of a reader: partition %d, offset %d", record.partition, record.offset)
            return []

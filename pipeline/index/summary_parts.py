"""Records of summaries of which other parts are still missing. No I/O.

All parts of a summary lie in one partition, one behind the other; a worker that dies in between publishes all of them
again. Summaries that stay incomplete, because a worker's records were lost, are given up, so that they hold up nothing.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from runtime.kafka.record import DecodedRecord, identify_attempt
from schemas.events import AttemptSummarized

logger = logging.getLogger(__name__)

GIVE_UP_MS: Final = 5 * 60 * 1000
"""Time by which a later record of the same partition makes a summary give up its missing parts, by Kafka's times."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of the size of all records that wait for other parts. A newer summary displaces the oldest."""


Partition: TypeAlias = tuple[str, int]
"""Topic and number."""


SummaryPart: TypeAlias = DecodedRecord[AttemptSummarized]


class _Key(NamedTuple):
    attempt_id: str
    version: int


@dataclass(slots=True)
class _Incomplete:
    first_offset: int
    read_ms: int
    """Kafka's time of its latest part."""
    parts: dict[int, SummaryPart] = field(default_factory=dict)
    size: int = 0


class SummaryParts:
    """Collected parts of summaries, until each is complete."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._waiting: dict[Partition, OrderedDict[_Key, _Incomplete]] = {}
        self._size = 0
        self._given_up = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def find_first_offset(self, partition: Partition) -> int | None:
        """Find the offset of the first record that waits for others; None if none waits."""
        return min((incomplete.first_offset for incomplete in self._waiting.get(partition, {}).values()), default=None)

    def add(self, partition: Partition, part: SummaryPart) -> list[SummaryPart] | None:
        """Add a part. Return all parts of the summary in their order, if this one was the last missing."""
        summary = part.event
        if summary.parts == 1:
            return [part]
        key, waiting = _Key(summary.attempt_id, summary.version), self._waiting.setdefault(partition, OrderedDict())
        pending = waiting.get(key)
        # The parts of one version are always equally many; with another number, those before can't be joined.
        if pending and any(chunk.event.parts != summary.parts for chunk in pending.parts.values()):
            self._remove(partition, key)
            pending = None
        if pending is None:
            pending = waiting[key] = _Incomplete(part.record.offset, part.record.timestamp)
        self._put(pending, part)
        if len(pending.parts) == summary.parts:
            self._remove(partition, key)
            self._supersede(partition, key)
            return [pending.parts[number] for number in range(summary.parts)]
        self._shrink()
        return None

    def advance(self, partition: Partition, timestamp_ms: int) -> None:
        """Give up summaries that are much older than a record of this time."""
        for key, incomplete in list(self._waiting.get(partition, {}).items()):
            if timestamp_ms - incomplete.read_ms > GIVE_UP_MS:
                self._give_up(partition, key, "the records that are missing did not come")

    def take_given_up(self) -> int:
        """Take the number of summaries that were given up since the last call."""
        taken, self._given_up = self._given_up, 0
        return taken

    def clear(self) -> None:
        self._waiting.clear()
        self._size = 0

    def _put(self, pending: _Incomplete, part: SummaryPart) -> None:
        before = pending.parts.get(part.event.part)
        size = part.record.size - (before.record.size if before else 0)
        pending.parts[part.event.part] = part
        pending.read_ms = part.record.timestamp
        pending.size += size
        self._size += size

    def _supersede(self, partition: Partition, complete: _Key) -> None:
        for key in list(self._waiting.get(partition, {})):
            if key.attempt_id == complete.attempt_id and key.version < complete.version:
                self._give_up(partition, key, f"version {complete.version} is whole")

    def _shrink(self) -> None:
        while self._size > self._max_bytes:
            ages = (
                (incomplete.read_ms, partition, key)
                for partition, waiting in self._waiting.items()
                for key, incomplete in waiting.items()
            )
            _, partition, key = min(ages, key=lambda entry: entry[0])
            self._give_up(partition, key, f"more than {self._max_bytes} bytes of records wait for others")

    def _give_up(self, partition: Partition, key: _Key, cause: str) -> None:
        incomplete = self._remove(partition, key)
        self._given_up += 1
        logger.warning(
            "gave up the summary of attempt %s, version %d, from %s[%d]@%d: %d of %d records are there; %s",
            key.attempt_id, key.version, *partition, incomplete.first_offset, len(incomplete.parts),
            next(iter(incomplete.parts.values())).event.parts, cause,
            extra=identify_attempt(next(iter(incomplete.parts.values())).event),
        )  # fmt: skip

    def _remove(self, partition: Partition, key: _Key) -> _Incomplete:
        incomplete = self._waiting[partition].pop(key)
        self._size -= incomplete.size
        return incomplete

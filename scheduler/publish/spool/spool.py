"""The append-only spool on disk between an answer and Kafka.

The records of an attempt are appended in one write and made durable before its answer leaves. The publisher reads them
in order, sends them, and advances the checkpoint after Kafka's acknowledgement. One process, one event loop:

    append() -> flush() -> answer            next_batch() -> Kafka -> acknowledge()

Bounded: when the spool is full, it drops the oldest device detail first (an event reports it), verdicts last. Where the
disk can't be written, entries wait in bounded memory, scheduling continues, and the log names the risk.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scheduler.publish.spool import frames
from scheduler.publish.spool.checkpoint import Position, SpoolInUseError, locked, read_checkpoint, write_checkpoint
from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.group_commit import GroupCommit
from scheduler.publish.spool.memory_buffer import MemoryBuffer
from scheduler.publish.spool.segment_log import MIB, LossCounts, SegmentLog, SpoolLimits
from scheduler.publish.spool.segments import Segment
from schemas.ids import microseconds

__all__ = ["LossCounts", "Spool", "SpoolBatch", "SpoolInUseError", "SpoolLimits"]

log = logging.getLogger(__name__)

DEFAULTS: Final = SpoolLimits()
_RETRY_DISK: Final = 1_000_000
"""Microseconds between two tries to write to a disk that could not be written."""


@dataclass(frozen=True, slots=True)
class SpoolBatch:
    """Entries in order. behind: the position after them, (segment, offset); None for entries from memory."""

    entries: tuple[Entry, ...]
    behind: Position | None


def now_utc() -> datetime:
    return datetime.now(UTC)


class Spool:
    """See the module. Every call comes from one thread."""

    def __init__(self, folder: Path, limits: SpoolLimits = DEFAULTS, clock: Callable[[], datetime] = now_utc) -> None:
        """Opens what is there. Raises `SpoolInUseError`, or `OSError` where the folder can't be used at all."""
        self.folder, self._limits, self._clock = folder, limits, clock
        self.counts = LossCounts()
        self.problem = ""
        self.arrived, self.acknowledged = asyncio.Event(), asyncio.Event()
        self._lock = locked(folder)
        self._sent = read_checkpoint(folder)
        self._files = SegmentLog(folder, limits, self._sent, self.counts)
        self._sent = self._cursor = self._files.delete_sent(self._sent)
        self._memory = MemoryBuffer(limits.memory_bytes)
        self._failed_at = 0
        self._sync = GroupCommit(
            lambda: self._files.active.duplicate_handle(), lambda error: self._fail(error, self._clock())
        )

    # Writing

    def append(self, entries: Sequence[Entry]) -> None:
        """Append the entries of one answer. Never raises for a disk: what can't be written waits in memory."""
        if not entries:
            return
        now = self._clock()
        # What waits in memory is older and goes first, so that records keep their order.
        if self._is_written((*self._memory.all(), *entries), now):
            self._memory.clear()
        else:
            self._memory.append(entries, now)
        self.arrived.set()

    def retry_disk(self) -> None:
        """Move what waits in memory to the disk, if that can be written again."""
        if len(self._memory) and self._is_written(self._memory.all(), self._clock()):
            self._memory.clear()

    def _is_written(self, entries: Sequence[Entry], now: datetime) -> bool:
        if self.problem and microseconds(now) - self._failed_at < _RETRY_DISK:
            return False
        try:
            if self.problem:
                self._files.start_afresh()
            self._files.append(entries, self._cursor, now)
        except OSError as error:
            self._fail(error, now)
            return False
        self._sync.appended()
        if self.problem:
            log.warning("spool %s: can be written again; %d records were taken from memory", self.folder, len(entries))
        self.problem = ""
        return True

    def _fail(self, error: OSError, now: datetime) -> None:
        self._failed_at = microseconds(now)
        problem = f"spool {self.folder} can't be written: {error.strerror or error}"
        if problem != self.problem:
            log.error(
                "%s. Scheduling continues; decisions are kept in memory, at most %d MiB, and those that Kafka does not"
                " have by then are lost when the scheduler ends. Free or repair the disk.",
                problem,
                self._limits.memory_bytes // MIB,
            )
        self.problem = problem

    # Durability

    async def flush(self) -> None:
        """Return when everything appended so far is durable; answers at the same time share one sync."""
        if self._limits.sync == "always":
            await self._sync.flush()

    async def sync_every(self, seconds: float = 0.5) -> None:
        """With `sync="interval"`: sync every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            if self._sync.is_behind:
                await self._sync.sync()

    # Reading

    def next_batch(self, max_bytes: int = 4 * MIB) -> SpoolBatch | None:
        """The next entries that were not handed out yet, about `max_bytes` of them; None when there are none."""
        while (segment := self._files.at(self._cursor)) is not None:
            found = self._read(segment, max_bytes)
            if found:
                return SpoolBatch(tuple(found), self._cursor)
            if segment is self._files.active:
                break
            self._cursor = (segment.number + 1, 0)
        waiting = self._memory.peek(max_bytes)
        return SpoolBatch(tuple(waiting), None) if waiting else None

    def _read(self, segment: Segment, max_bytes: int) -> list[Entry]:
        offset = self._cursor[1] if segment.number == self._cursor[0] else 0
        wanted = max_bytes
        while offset < segment.size:
            try:
                data = segment.read(offset, wanted)
            except OSError:
                log.exception("spool file %s can't be read; its records are lost", segment.path)
                self.counts.damaged += 1
                # Skip the file: its next reading would fail too, and nothing behind it would ever be sent.
                self._cursor = (segment.number, segment.size)
                return []
            if len(data) < min(wanted, segment.size - offset):
                segment.size = offset + len(data)  # another process has truncated the file
            scanned = frames.scan(data, is_end=offset + len(data) >= segment.size)
            self._note_damage(segment, offset, scanned.damaged)
            offset += scanned.consumed
            self._cursor = (segment.number, offset)
            if scanned.found:
                return [entry for entry, _ in scanned.found]
            # The next entry is longer than a batch: read as many bytes as it takes.
            wanted = max(scanned.wanted, max_bytes)
        return []

    def _note_damage(self, segment: Segment, offset: int, damaged: int) -> None:
        if damaged:
            self.counts.damaged += damaged
            log.error("spool file %s, from byte %d: skipped %d damaged places", segment.path, offset, damaged)

    def acknowledge(self, batch: SpoolBatch) -> None:
        """Note that Kafka has the batch: it is never handed out again, not even after a restart."""
        self.acknowledged.set()
        if batch.behind is None:
            self._memory.remove(batch.entries)
            return
        self._sent = self._files.delete_sent(max(self._sent, batch.behind))
        self._cursor = max(self._cursor, self._sent)
        write_checkpoint(self.folder, self._sent)

    def rewind(self) -> None:
        """Hand out again what was handed out and not acknowledged."""
        self._cursor = self._sent

    # Its state

    @property
    def disk_bytes(self) -> int:
        """What the files take."""
        return self._files.bytes

    @property
    def unsent_bytes(self) -> int:
        """What Kafka does not have yet, on disk and in memory."""
        done = self._sent[1] if self._sent[0] == self._files.first.number else 0
        return self._files.bytes - done + self._memory.bytes

    @property
    def dropped_detail(self) -> int:
        return self.counts.dropped_detail + self._memory.dropped_detail

    @property
    def dropped_verdicts(self) -> int:
        return self.counts.dropped_verdicts + self._memory.dropped_verdicts

    def oldest_age_seconds(self) -> float:
        """How long the oldest unsent record has waited; 0 when there is none."""
        written = self._oldest_on_disk() or self._memory.oldest()
        return max((microseconds(self._clock()) - written) / 1e6, 0.0) if written is not None else 0.0

    def _oldest_on_disk(self) -> int | None:
        segment = self._files.at(self._sent)
        if segment is None:
            return None
        try:
            offset = self._sent[1] if segment.number == self._sent[0] else 0
            return frames.written_at(segment.read(offset, frames.HEAD_BYTES))
        except OSError:
            return None

    def close(self) -> None:
        """Release the folder. Entries in memory are written to disk now; where that fails, they are lost."""
        # The last chance to write: the pause between two tries does not count.
        self._failed_at = 0
        self.retry_disk()
        if len(self._memory):
            log.error("spool %s: %d records in memory are lost", self.folder, len(self._memory))
        self._files.close()
        if self._lock:
            self._lock.close()

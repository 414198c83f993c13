"""The append-only spool on disk between an answer and Kafka.

The records of an attempt are appended in one write and made durable before its answer leaves. The publisher reads them
in order, sends them, and advances the checkpoint after Kafka's acknowledgement. One process, one event loop:

    append() -> flush() -> answer            next_batch() -> Kafka -> acknowledge()

Bounded: when the spool is full, it drops the oldest device detail first (an event reports it), verdicts last. Where the
disk can't be written, entries wait in bounded memory, scheduling continues, and the log names the risk.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from runtime.log_once import LoggedProblem
from scheduler.publish.spool import files, frames
from scheduler.publish.spool.checkpoint import (
    Position,
    SpoolInUseError,
    advance_epoch,
    read_checkpoint,
    take_lock,
    write_checkpoint,
)
from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.group_commit import GroupCommit
from scheduler.publish.spool.memory_buffer import MemoryBuffer
from scheduler.publish.spool.segment_log import MIB, LossCounts, SegmentLog, SpoolLimits
from scheduler.publish.spool.segments import Segment
from schemas.ids import count_microseconds

__all__ = ["LossCounts", "Spool", "SpoolBatch", "SpoolInUseError", "SpoolLimits"]

log = logging.getLogger(__name__)

DEFAULTS: Final = SpoolLimits()
_RETRY_SECONDS: Final = 1.0
"""Between two tries to write to a disk that could not be written."""


@dataclass(frozen=True, slots=True)
class SpoolBatch:
    """Entries in order. behind: the position after them, (segment, offset); None for entries from memory."""

    entries: tuple[Entry, ...]
    behind: Position | None


def get_now() -> datetime:
    return datetime.now(UTC)


class Spool:
    """See the module. Every call comes from one thread."""

    def __init__(
        self,
        folder: Path,
        limits: SpoolLimits = DEFAULTS,
        clock: Callable[[], datetime] = get_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the folder. Raises `SpoolInUseError`, or one of `FAILURES` where the folder can't be used at all."""
        self.folder, self._limits, self._clock, self._monotonic = folder, limits, clock, monotonic
        self.counts = LossCounts()
        self.problem = ""
        self.arrived, self.acknowledged = asyncio.Event(), asyncio.Event()
        self.reading = LoggedProblem(partial(log.error, "spool: %s; nothing behind it is sent, it is tried again"))
        self._lock = take_lock(folder)
        try:
            self._sent = read_checkpoint(folder)
            self._files = SegmentLog(folder, limits, self._sent, self.counts)
        except files.FAILURES:
            files.close(self._lock)
            raise
        self._sent = self._cursor = self._files.delete_sent(self._sent)
        self._memory = MemoryBuffer(limits.memory_bytes)
        self._failed_at = -_RETRY_SECONDS
        self._sync = GroupCommit(
            lambda: self._files.active.duplicate_handle(), lambda: self._files.active.sync(), self._fail
        )

    def advance_epoch(self) -> int:
        """Begin the epoch of this process, greater than that of every earlier one on this folder; see
        ``NodeStateChanged.epoch``."""
        return advance_epoch(self.folder, count_microseconds(self._clock()))

    # Writing

    def append(self, entries: Sequence[Entry]) -> None:
        """Append the entries of one answer. Never raises for a disk: what can't be written waits in memory."""
        if not entries:
            return
        now = self._clock()
        # What waits in memory is older and goes first, so that records keep their order.
        if self._try_write((*self._memory.list_entries(), *entries), now):
            self._memory.clear()
        else:
            self._memory.append(entries, now)
        self.arrived.set()

    def retry_disk(self) -> None:
        """Move what waits in memory to the disk, or find out where nothing waits, if that can be written again."""
        if (len(self._memory) or self.problem) and self._try_write(self._memory.list_entries(), self._clock()):
            self._memory.clear()

    def _try_write(self, entries: Sequence[Entry], now: datetime) -> bool:
        # Not by the clock: one that is set back would keep a mended disk from being tried.
        if self.problem and self._monotonic() - self._failed_at < _RETRY_SECONDS:
            return False
        try:
            if self.problem:
                self._files.start_afresh()
            self._files.append(entries, self._cursor, now)
        except files.FAILURES as error:
            self._fail(error)
            return False
        self._sync.note_append()
        if self.problem:
            log.warning("spool %s: can be written again; %d records were taken from memory", self.folder, len(entries))
        self.problem = ""
        return True

    def _fail(self, error: BaseException) -> None:
        self._failed_at = self._monotonic()
        problem = f"spool {self.folder} can't be written: {files.explain(error)}"
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
        """Sync every so many seconds, until cancelled, for `sync="interval"`."""
        while True:
            await asyncio.sleep(seconds)
            if self._sync.is_behind:
                await self._sync.sync()

    # Reading

    def take_batch(self, max_bytes: int = 4 * MIB) -> SpoolBatch | None:
        """Take the next entries that were not handed out yet, about `max_bytes` of them; None when there are none."""
        while (segment := self._files.find_segment(self._cursor)) is not None:
            entries = self._read(segment, max_bytes)
            if entries or entries is None:
                return SpoolBatch(tuple(entries), self._cursor) if entries else None
            if segment is self._files.active:
                break
            self._cursor = (segment.number + 1, 0)
        waiting = self._memory.peek(max_bytes)
        return SpoolBatch(tuple(waiting), None) if waiting else None

    def _read(self, segment: Segment, max_bytes: int) -> list[Entry] | None:
        """Read the next entries; None where that fails now: what is behind waits too, so that records keep their
        order."""
        offset = self._cursor[1] if segment.number == self._cursor[0] else 0
        wanted = max_bytes
        while offset < segment.size:
            try:
                data = segment.read(offset, wanted)
                if len(data) < min(wanted, segment.size - offset):
                    segment.size = offset + len(data)  # another process has truncated the file
                scanned = frames.scan(data, is_end=offset + len(data) >= segment.size)
            except FileNotFoundError:
                log.exception("spool file %s is gone; its records are lost", segment.path)
                self.counts.damaged += 1
                self._cursor = (segment.number, segment.size)
                return []
            except files.FAILURES as error:
                # Descriptors, memory or the disk may come back, and the records are still there.
                self.reading.note(f"{segment.path} can't be read: {files.explain(error)}")
                return None
            self.reading.note("")
            self._note_damage(segment, offset, scanned.damaged)
            offset += scanned.consumed
            self._cursor = (segment.number, offset)
            if scanned.intact:
                return [entry for entry, _ in scanned.intact]
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
        """Bytes of the files."""
        return self._files.bytes

    @property
    def unsent_bytes(self) -> int:
        """Bytes that Kafka does not have yet, on disk and in memory."""
        done = self._sent[1] if self._sent[0] == self._files.first.number else 0
        return self._files.bytes - done + self._memory.bytes

    @property
    def dropped_detail(self) -> int:
        return self.counts.dropped_detail + self._memory.dropped_detail

    @property
    def dropped_verdicts(self) -> int:
        return self.counts.dropped_verdicts + self._memory.dropped_verdicts

    def measure_oldest_age(self) -> float:
        """Measure how long the oldest unsent record has waited; 0 when there is none."""
        written = self._find_oldest_on_disk() or self._memory.get_oldest_time()
        return max((count_microseconds(self._clock()) - written) / 1e6, 0.0) if written is not None else 0.0

    def _find_oldest_on_disk(self) -> int | None:
        if (segment := self._files.find_segment(self._sent)) is None:
            return None
        try:
            offset = self._sent[1] if segment.number == self._sent[0] else 0
            return frames.read_time(segment.read(offset, frames.HEAD_BYTES))
        except files.FAILURES:
            return None

    def close(self) -> None:
        """Release the folder. Entries in memory are written to disk now; where that fails, they are lost."""
        # The last chance to write: the pause between two tries does not count.
        self._failed_at = -_RETRY_SECONDS + self._monotonic()
        self.retry_disk()
        if len(self._memory):
            log.error("spool %s: %d records in memory are lost", self.folder, len(self._memory))
        self._files.close()
        files.close(self._lock)

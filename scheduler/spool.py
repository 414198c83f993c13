"""The append-only spool on disk between an answer and Kafka.

An attempt's records are appended in one write and made durable before its answer leaves; from here `publish` sends
them, in order, and moves the checkpoint on after Kafka's acknowledgement. One process, one event loop:

    append() -> settle() -> answer            next_batch() -> Kafka -> acknowledge()

Bounded: when full, the oldest device detail goes first (and an event says so), verdicts last. Where the disk can't be
written, entries wait in bounded memory, scheduling goes on, and the log says what is at stake.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scheduler import frames, segments
from scheduler.frames import Entry, Kind
from scheduler.overflow import Overflow
from scheduler.segments import Segment
from scheduler.spool_folder import Position, SpoolInUseError, locked, read_checkpoint, write_checkpoint
from scheduler.thinning import Thinned
from schemas.ids import microseconds

__all__ = ["Batch", "Counts", "Limits", "Spool", "SpoolInUseError"]

log = logging.getLogger(__name__)

MIB: Final = 1024 * 1024
FULL: Final = "the spool was full"
_RETRY_DISK: Final = 1_000_000
"""Microseconds between two tries to write to a disk that could not be written."""


@dataclass(frozen=True, slots=True)
class Limits:
    """max_bytes: on disk. segment_bytes: a file is sealed from this size on. memory_bytes: while the disk fails."""

    max_bytes: int = 4096 * MIB
    segment_bytes: int = 16 * MIB
    memory_bytes: int = 64 * MIB
    sync: str = "always"
    """`always`: durable before the answer leaves. `interval`: every half second, which a machine's crash may lose."""

    @property
    def segment_limit(self) -> int:
        return min(self.segment_bytes, max(self.max_bytes // 8, 1))


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries in order, and where the spool stands behind them: (segment, offset), or None for those in memory."""

    entries: tuple[Entry, ...]
    behind: Position | None


@dataclass(slots=True)
class Counts:
    """What went wrong since the start."""

    damaged: int = 0
    torn_bytes: int = 0
    dropped_detail: int = 0
    dropped_verdicts: int = 0


def now_utc() -> datetime:
    return datetime.now(UTC)


class Spool:
    """See the module. Every call comes from one thread."""

    def __init__(self, folder: Path, limits: Limits = Limits(), clock: Callable[[], datetime] = now_utc) -> None:
        """Opens what is there. Raises `SpoolInUseError`, or `OSError` where the folder can't be used at all."""
        self.folder, self._limits, self._clock = folder, limits, clock
        self.counts = Counts()
        self.problem = ""
        self.arrived, self.acknowledged = asyncio.Event(), asyncio.Event()
        self._lock = locked(folder)
        self._segments = deque(segments.existing(folder))
        self._sent = read_checkpoint(folder)
        self._cursor = self._sent
        self._overflow = Overflow(limits.memory_bytes)
        self._failed_at = 0
        self._appended = self._durable = 0
        self._syncing: asyncio.Task[None] | None = None
        self._recover()

    def _recover(self) -> None:
        while self._segments and self._segments[0].number < self._sent[0]:
            self._segments.popleft().delete()
        if self._segments:
            torn = self._segments[-1].cut_torn_tail()
            self.counts.torn_bytes += torn
            if torn:
                log.warning("spool %s: cut a torn record of %d bytes, which was never answered", self.folder, torn)
        highest = max(self._sent[0], self._segments[-1].number if self._segments else 0)
        # Always a new file: the old one may be shorter than the checkpoint, or end in what could not be cut.
        self._segments.append(Segment(self.folder, highest + 1))
        self._skip_finished()

    # Writing

    def append(self, entries: Sequence[Entry]) -> None:
        """Take the entries of one answer. Never raises for a disk: what can't be written waits in memory."""
        if not entries:
            return
        now = self._clock()
        if self._is_written((*self._overflow.all(), *entries), now):
            self._overflow.clear()
        else:
            self._overflow.append(entries, now)
        self.arrived.set()

    def retry_disk(self) -> None:
        """Move what waits in memory to the disk, if that can be written again."""
        if len(self._overflow) and self._is_written(self._overflow.all(), self._clock()):
            self._overflow.clear()

    def _is_written(self, entries: Sequence[Entry], now: datetime) -> bool:
        if self.problem and microseconds(now) - self._failed_at < _RETRY_DISK:
            return False
        try:
            if self.problem:
                self._rotate()
            self._write(entries, now)
        except OSError as error:
            self._fail(error, now)
            return False
        if self.problem:
            log.warning("spool %s: can be written again; %d records were taken from memory", self.folder, len(entries))
        self.problem = ""
        return True

    def _write(self, entries: Sequence[Entry], now: datetime) -> None:
        parts = frames.frames(entries)
        if self.disk_bytes + sum(map(len, parts)) > self._limits.max_bytes:
            parts = frames.frames(self._make_room(entries, now))
        active = self._segments[-1]
        if active.size and active.size + sum(map(len, parts)) > self._limits.segment_limit:
            self._rotate()
        self._segments[-1].append(parts)
        self._appended += 1

    def _rotate(self) -> None:
        """Seal the file that is written to, and begin the next."""
        sealed = self._segments[-1]
        following = Segment(self.folder, sealed.number + 1)
        following.open()
        self._segments.append(following)
        try:
            sealed.sync()
        finally:
            sealed.close()

    def _fail(self, error: OSError, now: datetime) -> None:
        self._failed_at = microseconds(now)
        problem = f"spool {self.folder} can't be written: {error.strerror or error}"
        if problem != self.problem:
            log.error(
                "%s. Scheduling goes on; decisions are kept in memory, at most %d MiB, and those that Kafka does not"
                " have by then are lost when the scheduler ends. Free or mend the disk.",
                problem,
                self._limits.memory_bytes // MIB,
            )
        self.problem = problem

    # Being full

    def _make_room(self, entries: Sequence[Entry], now: datetime) -> Sequence[Entry]:
        """Give up what must be given up so that the entries fit; returns those that are to be written."""
        while self.disk_bytes + frames.size_of(entries) > self._limits.max_bytes:
            if self._thin_oldest(now):
                continue
            if any(entry.kind is Kind.DETAIL for entry in entries):
                thinned = Thinned(entries, now, FULL)
                self.counts.dropped_detail += thinned.dropped_records
                entries = thinned.kept
            elif not self._drop_oldest():
                break
        return entries

    def _thin_oldest(self, now: datetime) -> bool:
        """Take the device detail out of the oldest file that has any; False when none has."""
        # A file that was handed out whole stays as it is: the offsets of what is in flight point into it.
        fat = next((one for one in self._segments if one.may_be_thinned and one.number >= self._cursor[0]), None)
        if fat is None:
            return False
        if fat is self._segments[-1]:
            self._rotate()
        keep = self._cursor[1] if fat.number == self._cursor[0] else 0
        scanned = frames.scan(fat.read(keep, fat.size), is_end=True)
        thinned = Thinned((entry for entry, _ in scanned.found), now, FULL)
        if thinned.dropped_records:
            log.error(
                "spool %s is full (%d bytes): gave up %d records of device detail; node verdicts are kept",
                self.folder, self._limits.max_bytes, thinned.dropped_records,
            )  # fmt: skip
            fat.replace(keep, thinned.kept)
            self.counts.dropped_detail += thinned.dropped_records
        fat.is_thin = True
        return True

    def _drop_oldest(self) -> bool:
        """Nothing is left but verdicts: the oldest file goes."""
        if len(self._segments) == 1:
            if not self._segments[0].size:
                return False
            self._rotate()
        oldest = self._segments.popleft()
        start = self._cursor[1] if oldest.number == self._cursor[0] else 0
        lost = len(frames.scan(oldest.read(start, oldest.size), is_end=True).found)
        self.counts.dropped_verdicts += lost
        log.error("spool %s is full (%d bytes): lost %d decisions", self.folder, self._limits.max_bytes, lost)
        oldest.delete()
        self._sent = max(self._sent, (self._segments[0].number, 0))
        self._cursor = max(self._cursor, self._sent)
        return True

    # Durability

    async def settle(self) -> None:
        """Return when everything appended so far is durable; answers at the same time share one sync."""
        mine = self._appended
        while self._limits.sync == "always" and self._durable < mine:
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.create_task(self._sync())
            await asyncio.shield(self._syncing)

    async def sync_every(self, seconds: float = 0.5) -> None:
        """With `sync="interval"`: make durable what came, for ever."""
        while True:
            await asyncio.sleep(seconds)
            if self._durable < self._appended:
                await self._sync()

    async def _sync(self) -> None:
        upto, handle = self._appended, self._segments[-1].handle()
        try:
            if handle is not None:
                await asyncio.to_thread(_sync_and_close, handle)
        except OSError as error:
            self._fail(error, self._clock())
        self._durable = max(self._durable, upto)

    # Reading

    def next_batch(self, max_bytes: int = 4 * MIB) -> Batch | None:
        """The next entries that were not handed out yet, about `max_bytes` of them; None when there are none."""
        while (segment := self._under_cursor()) is not None:
            found = self._read_on(segment, max_bytes)
            if found:
                return Batch(tuple(found), self._cursor)
            if segment is self._segments[-1]:
                break
            self._cursor = (segment.number + 1, 0)
        waiting = self._overflow.peek(max_bytes)
        return Batch(tuple(waiting), None) if waiting else None

    def _under_cursor(self) -> Segment | None:
        return next((segment for segment in self._segments if segment.number >= self._cursor[0]), None)

    def _read_on(self, segment: Segment, max_bytes: int) -> list[Entry]:
        offset = self._cursor[1] if segment.number == self._cursor[0] else 0
        wanted = max_bytes
        while offset < segment.size:
            try:
                data = segment.read(offset, wanted)
            except OSError:
                log.exception("spool file %s can't be read; its records are lost", segment.path)
                self.counts.damaged += 1
                self._cursor = (segment.number, segment.size)
                return []
            if len(data) < min(wanted, segment.size - offset):
                segment.size = offset + len(data)  # somebody has cut the file
            scanned = frames.scan(data, is_end=offset + len(data) >= segment.size)
            self._note_damage(segment, offset, scanned.damaged)
            offset += scanned.consumed
            self._cursor = (segment.number, offset)
            if scanned.found:
                return [entry for entry, _ in scanned.found]
            wanted = max(scanned.wanted, max_bytes)
        return []

    def _note_damage(self, segment: Segment, offset: int, damaged: int) -> None:
        if damaged:
            self.counts.damaged += damaged
            log.error("spool file %s, from byte %d: skipped %d damaged places", segment.path, offset, damaged)

    def acknowledge(self, batch: Batch) -> None:
        """Kafka has the batch: never hand it out again, not even after a restart."""
        self.acknowledged.set()
        if batch.behind is None:
            self._overflow.remove(batch.entries)
            return
        self._sent = max(self._sent, batch.behind)
        self._skip_finished()
        write_checkpoint(self.folder, self._sent)

    def _skip_finished(self) -> None:
        """Delete the files that are sent to their end."""
        while len(self._segments) > 1 and (self._segments[0].number, self._segments[0].size) <= self._sent:
            self._sent = max(self._sent, (self._segments[1].number, 0))
            self._segments.popleft().delete()
        self._cursor = max(self._cursor, self._sent)

    def rewind(self) -> None:
        """Hand out again what was handed out and not acknowledged."""
        self._cursor = self._sent

    # Its state

    @property
    def disk_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def unsent_bytes(self) -> int:
        """What Kafka does not have yet, on disk and in memory."""
        first = self._segments[0]
        done = self._sent[1] if self._sent[0] == first.number else 0
        return self.disk_bytes - done + self._overflow.bytes

    @property
    def dropped_detail(self) -> int:
        return self.counts.dropped_detail + self._overflow.dropped_detail

    @property
    def dropped_verdicts(self) -> int:
        return self.counts.dropped_verdicts + self._overflow.dropped_verdicts

    def oldest_age_seconds(self) -> float:
        """How long the oldest unsent record has waited; 0 when there is none."""
        written = self._oldest_on_disk() or self._overflow.oldest()
        return max((microseconds(self._clock()) - written) / 1e6, 0.0) if written is not None else 0.0

    def _oldest_on_disk(self) -> int | None:
        if self.disk_bytes == 0 or self.unsent_bytes == self._overflow.bytes:
            return None
        number, offset = self._sent
        segment = next((segment for segment in self._segments if segment.number >= number and segment.size), None)
        if segment is None:
            return None
        try:
            return frames.written_at(segment.read(offset if segment.number == number else 0, frames.HEAD_BYTES))
        except OSError:
            return None

    def close(self) -> None:
        """Let the folder go. What is in it stays."""
        for segment in self._segments:
            segment.close()
        if self._lock:
            self._lock.close()


def _sync_and_close(handle: int) -> None:
    try:
        os.fdatasync(handle)
    finally:
        os.close(handle)

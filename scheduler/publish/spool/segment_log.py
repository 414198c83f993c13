"""All files of a spool together: appended to at the end, bounded, thinned and dropped from the front."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from scheduler.publish.spool import frames, segments
from scheduler.publish.spool.checkpoint import Position
from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.recycled_segments import Spares
from scheduler.publish.spool.segments import Segment
from scheduler.publish.spool.shedding import Thinned

log = logging.getLogger(__name__)

MIB: Final = 1024 * 1024
FULL: Final = "the spool was full"


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """max_bytes: on disk. segment_bytes: a file is sealed from this size on. memory_bytes: while the disk fails."""

    max_bytes: int = 4096 * MIB
    segment_bytes: int = 16 * MIB
    memory_bytes: int = 64 * MIB
    sync: str = "always"
    """`always`: durable before the answer leaves. `interval`: every half second, which a machine's crash may lose."""

    @property
    def segment_limit(self) -> int:
        return min(self.segment_bytes, max(self.max_bytes // 8, 1))


@dataclass(slots=True)
class LossCounts:
    """What went wrong since the start."""

    damaged: int = 0
    torn_bytes: int = 0
    dropped_detail: int = 0
    dropped_verdicts: int = 0


class SegmentLog:
    """At least one file, the last of which is written to. Positions are those of the reader, which it never passes."""

    def __init__(self, folder: Path, limits: SpoolLimits, sent: Position, counts: LossCounts) -> None:
        """Take over what is there behind `sent`. Raises `OSError`."""
        self._folder, self._limits, self._counts = folder, limits, counts
        self._segments = deque(segments.existing(folder))
        self._spares = Spares(folder)
        while self._segments and self._segments[0].number < sent[0]:
            self._retire(self._segments.popleft())
        if self._segments:
            self._cut_torn_tail(self._segments[-1])
        highest = max(sent[0], self._segments[-1].number if self._segments else 0, self._spares.highest)
        # Always a new file: the old one may be shorter than the checkpoint, or end in what could not be cut.
        # And always a number that no file had, or frames of its earlier life would be taken for live ones.
        self._segments.append(Segment(folder, highest + 1))

    def _cut_torn_tail(self, last: Segment) -> None:
        torn = last.cut_torn_tail()
        self._counts.torn_bytes += torn
        if torn:
            log.warning("spool %s: cut a torn record of %d bytes, which was never answered", self._folder, torn)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def bytes(self) -> int:
        """What may still be read."""
        return sum(segment.size for segment in self._segments)

    @property
    def disk_bytes(self) -> int:
        """What the files take, spares too."""
        return self.bytes + self._spares.bytes + sum(segment.stale_bytes for segment in self._segments)

    def at(self, position: Position) -> Segment | None:
        """The file that a reader at `position` goes on with."""
        return next((segment for segment in self._segments if segment.number >= position[0]), None)

    def append(self, entries: Sequence[Entry], cursor: Position, now: datetime) -> None:
        """Write all entries or none; what must be given up for them is. Raises `OSError`."""
        size = frames.size_of(entries)
        if self.disk_bytes + size > self._limits.max_bytes:
            entries = self._make_room(entries, cursor, now)
            size = frames.size_of(entries)
        if self.active.size and self.active.size + size > self._limits.segment_limit:
            self.rotate()
        if not self.active.is_open:
            self._open(self.active)
        self.active.append(entries)

    def _open(self, segment: Segment) -> None:
        self._spares.give(segment.path)
        segment.open()

    def _retire(self, segment: Segment) -> None:
        """Its records are sent or lost: the file becomes a spare where it is worth it."""
        segment.close()
        if segment.size * 2 >= self._limits.segment_limit:
            self._spares.keep(segment.path)
        else:
            segment.path.unlink(missing_ok=True)

    def rotate(self) -> None:
        """Seal the file that is written to, and begin the next. Raises `OSError`."""
        sealed = self.active
        # Before the next one is there: only the last file may end in what is stale.
        if sealed.stale_bytes:
            sealed.trim()
        following = Segment(self._folder, sealed.number + 1)
        self._open(following)
        self._segments.append(following)
        try:
            sealed.sync()
        finally:
            sealed.close()

    def start_afresh(self) -> None:
        """Go on in a file that nothing is wrong with yet. Raises `OSError`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.active.size or not self.active.path.exists():
            self.rotate()

    def delete_sent(self, sent: Position) -> Position:
        """Let go of the files that are sent to their end; `sent` as a position in a file that is there."""
        while len(self._segments) > 1 and (self.first.number, self.first.size) <= sent:
            self._retire(self._segments.popleft())
            sent = max(sent, (self.first.number, 0))
        return sent

    def _make_room(self, entries: Sequence[Entry], cursor: Position, now: datetime) -> Sequence[Entry]:
        """Give up what must be given up so that the entries fit; returns those that are to be written."""
        self._spares.clear()
        if self.active.stale_bytes:
            self.active.trim()
        while self.bytes + frames.size_of(entries) > self._limits.max_bytes:
            if self._thin_oldest(cursor, now):
                continue
            if any(entry.kind is EntryKind.DETAIL for entry in entries):
                thinned = Thinned(entries, now, FULL)
                self._counts.dropped_detail += thinned.dropped_records
                entries = thinned.kept
            elif not self._drop_oldest(cursor):
                break
        return entries

    def _thin_oldest(self, cursor: Position, now: datetime) -> bool:
        """Take the device detail out of the oldest file that may have any; False when there is no such file."""
        # A file that was handed out whole stays as it is: the offsets of what is in flight point into it.
        fat = next((one for one in self._segments if one.may_be_thinned and one.number >= cursor[0]), None)
        if fat is None:
            return False
        if fat is self.active:
            self.rotate()
        keep = cursor[1] if fat.number == cursor[0] else 0
        thinned = Thinned((entry for entry, _ in fat.scan(keep).found), now, FULL)
        if thinned.dropped_records:
            lost = thinned.dropped_records
            log.error("spool %s is full: gave up %d records of device detail; verdicts are kept", self._folder, lost)
            fat.replace(keep, thinned.kept)
            self._counts.dropped_detail += lost
        fat.is_thin = True
        return True

    def _drop_oldest(self, cursor: Position) -> bool:
        """Nothing is left but verdicts: the oldest file goes. False when there is none."""
        if len(self._segments) == 1:
            if not self.first.size:
                return False
            self.rotate()
        oldest = self._segments.popleft()
        # What was handed out already is not lost by this.
        start = min(cursor[1], oldest.size) if oldest.number == cursor[0] else oldest.size * (oldest.number < cursor[0])
        lost = len(oldest.scan(start).found)
        self._counts.dropped_verdicts += lost
        log.error("spool %s is full: lost %d decisions", self._folder, lost)
        oldest.delete()
        return True

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

"""All files of a spool together: appended to at the end, bounded, thinned and deleted from the front."""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from scheduler.publish.spool import files, frames, segments
from scheduler.publish.spool.checkpoint import Position
from scheduler.publish.spool.frames import Entry, EntryKind
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
        # At least eight files: thinning and deleting work on whole files.
        return min(self.segment_bytes, max(self.max_bytes // 8, 1))


@dataclass(slots=True)
class LossCounts:
    """Losses since the start, in damaged spots, bytes and records."""

    damaged: int = 0
    torn_bytes: int = 0
    dropped_detail: int = 0
    dropped_verdicts: int = 0


class SegmentLog:
    """At least one file, the last of which is appended to. Positions are those of the reader.

    What the reader was handed stays where it is: a file in front of its cursor is never rewritten.
    """

    def __init__(self, folder: Path, limits: SpoolLimits, sent: Position, counts: LossCounts) -> None:
        """Open the files that hold anything behind `sent`, and delete the others. Raises one of `FAILURES`."""
        self._folder, self._limits, self._counts = folder, limits, counts
        self._segments = deque(segments.list_existing(folder))
        while self._segments and self._segments[0].number < sent[0]:
            self._segments.popleft().delete()
        if self._segments:
            # Only the last file was being appended to; the others were synced when they were sealed.
            self._cut_torn_tail(self._segments[-1])
        highest = max(sent[0], self._segments[-1].number if self._segments else 0)
        # Always a new file: the last one may be shorter than the checkpoint, or end in bytes that could not be cut.
        self._segments.append(Segment(folder, highest + 1))

    def _cut_torn_tail(self, last: Segment) -> None:
        torn = last.cut_torn_tail()
        self._counts.torn_bytes += torn
        if torn:
            log.warning("spool %s: cut a torn record of %d bytes; its call was never answered", self._folder, torn)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(segment.size for segment in self._segments)

    def find_segment(self, position: Position) -> Segment | None:
        """Find the file that a reader at `position` continues with."""
        return next((segment for segment in self._segments if segment.number >= position[0]), None)

    def append(self, entries: Sequence[Entry], cursor: Position, now: datetime) -> None:
        """Write all entries or none; drop older ones where the limit demands it. Raises one of `FAILURES`, where there
        are no entries too, if some could not be written.
        """
        size = frames.measure(entries)
        if self.bytes + size > self._limits.max_bytes:
            entries = self._free_space(entries, cursor, now)
            size = frames.measure(entries)
        if self.active.size and self.active.size + size > self._limits.segment_limit:
            self.rotate()
        if entries:
            self.active.append(entries)
        else:
            self.active.probe()

    def rotate(self) -> None:
        """Seal the file that is appended to, and begin the next one. Raises one of `FAILURES`."""
        sealed = self.active
        following = Segment(self._folder, sealed.number + 1)
        # Before the old file is sealed: where this fails, appends can continue there.
        following.create()
        self._segments.append(following)
        try:
            sealed.sync()
        finally:
            sealed.close()

    def start_afresh(self) -> None:
        """Continue in a file that no write has failed on yet. Raises one of `FAILURES`."""
        files.make_folder(self._folder)
        if self.active.size or not self.active.is_there:
            self.rotate()

    def delete_sent(self, sent: Position) -> Position:
        """Delete the files that are sent to their end; return `sent` as a position in a file that exists."""
        while len(self._segments) > 1 and (self.first.number, self.first.size) <= sent:
            self.first.delete()
            self._segments.popleft()
            sent = max(sent, (self.first.number, 0))
        return sent

    def _free_space(self, entries: Sequence[Entry], cursor: Position, now: datetime) -> Sequence[Entry]:
        """Drop records until the entries fit; return what is left of the entries."""
        while self.bytes + frames.measure(entries) > self._limits.max_bytes:
            if self._thin_oldest(cursor, now):
                continue
            # The files hold verdicts only by now: the new detail is dropped before any of them.
            if any(entry.kind is EntryKind.DETAIL for entry in entries):
                thinned = Thinned(entries, now, FULL)
                self._counts.dropped_detail += thinned.dropped_records
                entries = thinned.remaining
            elif not self._drop_oldest(cursor):
                break
        return entries

    def _thin_oldest(self, cursor: Position, now: datetime) -> bool:
        """Take the device detail out of the oldest file that may have any; False when there is no such file."""
        # A file that was handed out whole stays as it is: the offsets of records in flight point into it.
        oldest = next(
            (segment for segment in self._segments if segment.may_be_thinned and segment.number >= cursor[0]), None
        )
        if oldest is None:
            return False
        # Its descriptor would remain on the file that `replace` takes the name from, and appends would go there.
        if oldest is self.active:
            self.rotate()
        keep = cursor[1] if oldest.number == cursor[0] else 0
        thinned = Thinned((entry for entry, _ in oldest.scan(keep).intact), now, FULL)
        if thinned.dropped_records:
            lost = thinned.dropped_records
            log.error("spool %s is full: dropped %d records of device detail; verdicts are kept", self._folder, lost)
            oldest.rewrite(keep, thinned.remaining)
            self._counts.dropped_detail += lost
        # Also where nothing was dropped, else `_free_space` would find this file again without an end.
        oldest.is_thin = True
        return True

    def _drop_oldest(self, cursor: Position) -> bool:
        """Delete the oldest file, since nothing but verdicts is left; False when there is none."""
        if len(self._segments) == 1:
            if not self.first.size:
                return False
            self.rotate()
        oldest = self.first
        # What the reader was handed already is not lost with the file.
        start = min(cursor[1], oldest.size) if oldest.number == cursor[0] else oldest.size * (oldest.number < cursor[0])
        lost = len(oldest.scan(start).intact)
        self._segments.popleft()
        self._counts.dropped_verdicts += lost
        log.error("spool %s is full: lost %d decisions", self._folder, lost)
        oldest.delete()
        return True

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

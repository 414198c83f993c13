"""Shedding of device detail: drops it from a run of entries and reports the loss by events in its place. Pure."""

from collections.abc import Iterable
from datetime import datetime

from scheduler.publish.spool.frames import Entry, EntryKind
from schemas.codec.records import decode, encode
from schemas.events import DetailDropped, DevicesJudged
from schemas.ids import count_microseconds
from schemas.topics import DECISIONS


class Thinned:
    """A thinned run of entries. remaining: every verdict, in order, and a `DetailDropped` event for each attempt's
    detail."""

    def __init__(self, entries: Iterable[Entry], dropped_at: datetime, cause: str) -> None:
        self.remaining: list[Entry] = []
        self.dropped_records = 0
        self._dropped_at, self._cause = dropped_at, cause
        self._open: list[Entry] = []
        for entry in entries:
            self._take(entry)
        self._close()

    def _take(self, entry: Entry) -> None:
        if entry.kind is not EntryKind.DETAIL:
            self._close()
            self.remaining.append(entry)
            return
        if self._open and _get_attempt_id(self._open[0]) != _get_attempt_id(entry):
            self._close()
        self._open.append(entry)

    def _close(self) -> None:
        """Put the event in the place of the detail of the attempt that ends here."""
        if self._open:
            self.dropped_records += len(self._open)
            report = _make_dropped_event(self._open, self._dropped_at, self._cause)
            self.remaining += [report] if report else []
            self._open = []


def _get_attempt_id(entry: Entry) -> str:
    # A record's id begins with that of its attempt, so grouping needs no decoding.
    return entry.ce_id.split("/", 1)[0]


def _make_dropped_event(detail: list[Entry], dropped_at: datetime, cause: str) -> Entry | None:
    detail_event = decode(detail[0].record.value, detail[0].record.headers)
    if not isinstance(detail_event, DevicesJudged):
        return None
    event = DetailDropped(
        cluster=detail_event.cluster,
        attempt_id=detail_event.attempt_id,
        pod=detail_event.pod,
        scheduler=detail_event.scheduler,
        started_at=detail_event.started_at,
        dropped_at=dropped_at,
        device_records=len(detail),
        judged_devices=sum(entry.rows for entry in detail),
        cause=cause,
    )
    # As a verdict: the next thinning must not drop the report of this one.
    return Entry(EntryKind.VERDICT, encode(event, DECISIONS.name), count_microseconds(dropped_at))

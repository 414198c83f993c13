"""The counts of one partition: pure.

Windows of ten minutes of ``AttemptCounted.recorded_at`` cut a partition of the topic into ranges of offsets: a window
begins with the first record that is of a later time than all before it, and a record that comes later than its own
window counts in the one that is open then. Each window has rows of its own for every minute that it counts in, and rows
of several windows add up. So a window that has ended never has to be read back.

Rows depend on nothing but the records before them, so any process that reads the same records publishes the same rows.
To recognize what it has counted already, a window needs the attempts of the windows before it: reading begins again
with enough of these.
"""

from collections import deque
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.trends import Minute, Weights, build_records, list_weights
from schemas.events import AttemptCounted, TrendsCounted

WINDOW: Final = timedelta(minutes=10)
MIN_REMEMBERED: Final = 5_000
"""Number of remembered attempts of earlier windows: more than a worker publishes in one batch, because a worker that is
killed in a batch publishes all of it again. A greater number must not read the offsets that were committed with a
smaller one: it would not count the first window that it reads."""


class Changes(NamedTuple):
    trends: list[TrendsCounted]
    restart_offset: int | None
    """Offset to commit when ``trends`` are published: reading from there continues with the same rows. None: the offset
    that is committed, or the beginning of the topic where none is."""


class _Counted(NamedTuple):
    version: int
    adds: Weights


class _Window(NamedTuple):
    recorded_at: datetime
    first_offset: int
    counted: dict[str, _Counted]
    """Latest counted versions of the attempts that the window has records of, by id."""


class PartitionCounts:
    """The counts of the records that ``put`` is given, in the order of their offsets.

    ``committed`` is a ``restart_offset`` of an earlier process, None where reading begins with the topic.
    """

    def __init__(self, partition: int, committed: int | None, min_remembered: int = MIN_REMEMBERED) -> None:
        self._partition, self._committed, self._min_remembered = partition, committed, min_remembered
        self._windows: deque[_Window] = deque()
        """The last window counts; earlier ones are remembered."""
        self._minutes: dict[tuple[str, datetime], Minute] = {}
        """The minutes of the last window."""
        self._changed: dict[tuple[str, datetime, datetime], Minute] = {}
        self._weights: dict[Weights, Weights] = {}
        """Equal weights, in memory once: most attempts of a minute add the same."""
        self._remembered = 0
        self._is_publishing = False

    def __len__(self) -> int:
        """Count the attempts in memory, once for each window with records of them."""
        return sum(len(window.counted) for window in self._windows)

    def put(self, offset: int, recorded_at: datetime, event: AttemptCounted) -> bool:
        """Count the attempt; return whether this version of it is new."""
        self._open_window(offset, recorded_at)
        previous = self._find_counted(event.attempt_id)
        if previous and previous.version >= event.adds.version:
            # It is of this window too: one who began to read after the earlier record holds it only here, and both have
            # to forget the same windows.
            self._windows[-1].counted[event.attempt_id] = previous
            return False
        namespace = event.pod.namespace
        adds = list_weights(namespace, event.adds)
        adds = self._weights.setdefault(adds, adds)
        self._windows[-1].counted[event.attempt_id] = _Counted(event.adds.version, adds)
        if self._is_publishing:
            # A worker that was killed may have published a version that it does not know of: what is counted here
            # comes before what the record says.
            replaces = previous.adds if previous else list_weights(namespace, event.replaces) if event.replaces else ()
            minute = self._get_minute(event.cluster, event.started_at)
            # A UID where there is one: a pod made again under the same name is another pod in the count.
            minute.put(event.pod.uid or str(event.pod), adds, replaces)
            self._changed[minute.cluster, minute.recorded_at, minute.started_at] = minute
        return True

    def take(self) -> Changes:
        """Take all rows of every minute that has changed since the last call."""
        trends = [event for minute in self._changed.values() for event in build_records(minute)]
        self._changed.clear()
        is_enough = self._remembered >= self._min_remembered
        return Changes(trends, self._windows[0].first_offset if is_enough else None)

    def _find_counted(self, attempt_id: str) -> _Counted | None:
        # The latest window first: what it counted is the greater version.
        versions = (window.counted.get(attempt_id) for window in reversed(self._windows))
        return next((counted for counted in versions if counted), None)

    def _open_window(self, offset: int, recorded_at: datetime) -> None:
        begins_at = recorded_at.replace(minute=recorded_at.minute - recorded_at.minute % 10, second=0, microsecond=0)
        if not self._windows:
            # The record at the committed offset may have expired: then what follows it may not have been counted, and
            # rows that are not whole have smaller versions than those that were published before.
            self._is_publishing = self._committed is None or offset > self._committed
        elif begins_at <= self._windows[-1].recorded_at:
            return
        self._windows.append(_Window(begins_at, offset, {}))
        self._minutes.clear()
        self._weights.clear()
        self._forget()
        # Every window before it was counted by an earlier process.
        self._is_publishing |= self._remembered >= self._min_remembered

    def _forget(self) -> None:
        """Drop the oldest windows that are not needed to have enough attempts before the last one."""
        self._remembered = len(self)
        while self._remembered - len(self._windows[0].counted) >= self._min_remembered:
            self._remembered -= len(self._windows.popleft().counted)

    def _get_minute(self, cluster: str, started_at: datetime) -> Minute:
        begins_at = started_at.replace(second=0, microsecond=0)
        if (minute := self._minutes.get((cluster, begins_at))) is None:
            minute = Minute(cluster, begins_at, self._partition, self._windows[-1].recorded_at)
            self._minutes[cluster, begins_at] = minute
        return minute

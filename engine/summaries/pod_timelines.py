"""Pods of one name, separated, and the interval of each on each node, with its facts: pure.

Facts with a UID belong to the pod that has it. A fact without one goes to the pod that it fits, else it makes its own
placements, in the order of time.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import zip_longest
from typing import Final, NamedTuple

from engine.summaries.pod_facts import (
    DELETED,
    ENDS,
    BindFact,
    Fact,
    PodSighting,
    rank_bind,
    rank_by_time,
    rank_devices,
)
from schemas.events import DeviceAllocation
from schemas.ids import count_microseconds


@dataclass(slots=True)
class PlacementInterval:
    """Facts about one pod on one node. ``end``: time and cause of the end of its time there."""

    uid: str
    node: str
    binds: list[BindFact] = field(default_factory=list)
    sights: list[PodSighting] = field(default_factory=list)
    end: tuple[datetime, str] | None = None
    earlier_ends: list[PodSighting] = field(default_factory=list)
    """Ends of earlier pods with the same UID that were seen on no node: they decide which bind belongs to which pod."""
    generation: str = ""
    """Mark that separates it from an earlier pod with the same UID, or, without a UID, from one that begins in the same
    instant."""

    @property
    def bind(self) -> BindFact | None:
        """The bind report that names the devices, if several reported the bind."""
        return max(self.binds, key=lambda bind: (bool(bind.held), *rank_bind(bind), bind.attempt_id), default=None)

    @property
    def started_at(self) -> datetime:
        return self.bound_at or min(sight.time for sight in self._sights_here)

    @property
    def bound_at(self) -> datetime | None:
        """Time of the bind, else the cluster's time; None if neither is reported."""
        if bind := self.bind:
            return bind.time
        return min((sight.scheduled for sight in self._sights_here if sight.scheduled), default=None)

    @property
    def running_at(self) -> datetime | None:
        return min((sight.running_at for sight in self._sights_here if sight.running_at), default=None)

    @property
    def held(self) -> tuple[DeviceAllocation, ...]:
        """Devices that the bind took; if no bind or none of its devices is reported, those that the pod names."""
        bind = self.bind
        if bind and bind.held:
            return bind.held
        return max((sight.held for sight in self._sights_here), key=rank_devices, default=())

    @property
    def _sights_here(self) -> list[PodSighting]:
        return [sight for sight in self.sights if sight.node == self.node]

    @property
    def phase(self) -> str:
        seen = [sight for sight in self.sights if sight.state != DELETED]
        return max(seen, key=lambda sight: (sight.time, sight.state)).state if seen else ""

    def derive_id(self, cluster: str, pod: str) -> str:
        """Derive the placement's id. Without a UID the bind identifies it, else its beginning."""
        bind = self.bind
        # The id must not depend on facts that may still arrive: a UID never changes, a late bind moves the start.
        which = self.uid or (bind.attempt_id if bind else str(count_microseconds(self.started_at)))
        # The cluster is a part because files of a cluster (``--cluster``) are used twice, with all UIDs in them.
        parts = (cluster, "uid" if self.uid else "name", "" if self.uid else pod, which, self.generation, self.node)
        source = "\x1f".join(parts)
        return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def rank_by_start(part: PlacementInterval) -> tuple[datetime, str, str]:
    return part.started_at, part.uid, part.node


ADOPTED_WITHIN: Final = timedelta(minutes=10)
"""Longest time from a bind without a UID to the first sighting of its pod: clocks differ, watches lag."""
AGAIN_AFTER: Final = timedelta(seconds=2)
"""Shortest time from the end of a pod to a bind of another pod with the same UID; cluster files (``--cluster``) reuse
UIDs."""


class _Span(NamedTuple):
    """Time of one pod on one node."""

    uid: str
    node: str
    started_at: datetime
    until: datetime | None


@dataclass(slots=True)
class PodTimeline:
    """Facts about one pod; with an empty UID the facts that fit no pod with a UID."""

    uid: str
    binds: list[BindFact] = field(default_factory=list)
    sights: list[PodSighting] = field(default_factory=list)
    earlier_ends: list[PodSighting] = field(default_factory=list)
    generation: str = ""

    def take(self, fact: Fact) -> None:
        if isinstance(fact, BindFact):
            self.binds.append(fact)
        else:
            self.sights.append(fact)

    @property
    def end(self) -> tuple[datetime, str] | None:
        ends = [sight for sight in self.sights if sight.state in ENDS]
        # A pod that ends is deleted too, and a watcher that sees the deletion may not have seen the phase.
        how = min(ends, key=lambda sight: (sight.state == DELETED, sight.time, sight.state), default=None)
        return (min(sight.time for sight in ends), how.state) if how else None

    @property
    def nodes(self) -> set[str]:
        return ({bind.node for bind in self.binds} | {sight.node for sight in self.sights}) - {""}

    def list_intervals(self) -> list[PlacementInterval]:
        return [
            PlacementInterval(
                self.uid, node, [bind for bind in self.binds if bind.node == node],
                [sight for sight in self.sights if sight.node in (node, "")],
                self.end, self.earlier_ends, self.generation,
            )
            for node in sorted(self.nodes)
        ]  # fmt: skip

    def split_at_rebinds(self) -> list["PodTimeline"]:
        """Split the timeline at each bind that came after an end."""
        ends = sorted(sight.time for sight in self.sights if sight.state in ENDS)
        beginnings: list[datetime] = []
        for bind in sorted(self.binds, key=rank_by_time):
            if any(end + AGAIN_AFTER < bind.time and (not beginnings or end >= beginnings[-1]) for end in ends):
                beginnings.append(bind.time)
        timelines = [PodTimeline(self.uid) for _ in (None, *beginnings)]
        facts: list[Fact] = [*self.binds, *self.sights]
        for fact in facts:
            timelines[bisect_right(beginnings, fact.time)].take(fact)
        placed = [timeline for timeline in timelines if timeline.nodes]
        for timeline in placed[:1]:
            timeline.earlier_ends = [sight for nowhere in timelines if not nowhere.nodes for sight in nowhere.sights]
        for timeline, began_at in zip(timelines, (None, *beginnings), strict=True):
            timeline.generation = str(count_microseconds(began_at)) if began_at and timeline is not placed[0] else ""
        return placed


def _group_by_uid(facts: Iterable[Fact]) -> dict[str, PodTimeline]:
    timelines: dict[str, PodTimeline] = {}
    for fact in facts:
        timelines.setdefault(fact.uid, PodTimeline(fact.uid)).take(fact)
    return timelines


def derive_intervals(facts: Iterable[Fact]) -> list[PlacementInterval]:
    """Derive all intervals, unsorted. A fact without a UID goes to the pod that it fits, else it makes its own
    intervals."""
    timelines = _group_by_uid(facts)
    nameless = timelines.pop("", PodTimeline(""))
    spans = _derive_spans(timelines)
    nameless_binds = [bind for bind in nameless.binds if not _hand_over(bind, _match_bind(bind, spans), timelines)]
    # The binds move the beginnings of the spans, which the sightings are compared with.
    spans = _derive_spans(timelines)
    nameless_sights = [
        sight for sight in nameless.sights if not _hand_over(sight, _match_sighting(sight, spans), timelines)
    ]
    return [*_list_intervals(timelines), *_derive_nameless_intervals([*nameless_binds, *nameless_sights])]


def _list_intervals(timelines: Mapping[str, PodTimeline]) -> list[PlacementInterval]:
    return [
        part for pod in timelines.values() for timeline in pod.split_at_rebinds() for part in timeline.list_intervals()
    ]


def _hand_over(fact: Fact, uid: str | None, timelines: Mapping[str, PodTimeline]) -> bool:
    if uid:
        timelines[uid].take(fact)
    return bool(uid)


def _derive_spans(timelines: Mapping[str, PodTimeline]) -> list[_Span]:
    intervals = sorted(_list_intervals(timelines), key=rank_by_start)
    spans = []
    for part, later in zip_longest(intervals, intervals[1:]):
        ends = [*([part.end[0]] if part.end else []), *([later.started_at] if later else [])]
        spans.append(_Span(part.uid, part.node, part.started_at, min(ends, default=None)))
    return spans


def _match_bind(bind: BindFact, spans: Sequence[_Span]) -> str | None:
    """Return the first pod on the bind's node that had not ended by then."""
    fits = (
        span.uid
        for span in spans
        if span.node == bind.node
        and (span.until is None or span.until > bind.time)
        and span.started_at - bind.time <= ADOPTED_WITHIN
    )
    return next(fits, None)


def _match_sighting(sight: PodSighting, spans: Sequence[_Span]) -> str | None:
    """Return the latest pod there that had begun by then, unless it had ended."""
    fits = [
        span.uid
        for span in spans
        if sight.node in ("", span.node)
        and span.started_at <= sight.time
        and (span.until is None or sight.time <= span.until)
    ]
    return fits[-1] if fits else None


def _derive_nameless_intervals(facts: Iterable[Fact]) -> list[PlacementInterval]:
    """Derive the intervals of facts without UIDs: a bind begins one, so does a sighting of a pod where none was; an end
    ends it."""
    intervals: list[PlacementInterval] = []
    for fact in sorted(facts, key=rank_by_time):
        last = intervals[-1] if intervals else None
        continues = last is not None and fact.node in ("", last.node) and _continues(last, fact)
        if not continues and fact.node:
            intervals.append(PlacementInterval("", fact.node))
        if continues or fact.node:
            _take(intervals[-1], fact)
    _mark_equal_starts(part for part in intervals if not part.binds)
    return intervals


def _mark_equal_starts(intervals: Iterable[PlacementInterval]) -> None:
    """Number intervals with equal starts: one may end in the instant in which the next was scheduled."""
    before: Counter[tuple[datetime, str]] = Counter()
    for part in intervals:
        begins = part.started_at, part.node
        # The first keeps an empty mark, so that its id does not change when the second is reported.
        part.generation = str(before[begins] or "")
        before[begins] += 1


def _continues(part: PlacementInterval, fact: Fact) -> bool:
    if isinstance(fact, BindFact):
        return part.end is None and not part.binds
    return part.end is None or fact.state in ENDS


def _take(part: PlacementInterval, fact: Fact) -> None:
    if isinstance(fact, BindFact):
        part.binds.append(fact)
        return
    part.sights.append(fact)
    if fact.state in ENDS and part.end is None:
        part.end = fact.time, fact.state

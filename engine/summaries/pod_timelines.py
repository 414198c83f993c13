"""The pods of one name, separated, and the time of each on each node: pure.

Facts with a UID belong to the pod that has it. A fact without one goes to the pod that it fits, else it makes its own
placements, in the order of time.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Final, NamedTuple

from engine.summaries.placement_interval import PlacementInterval, order
from engine.summaries.pod_facts import (
    DELETED,
    ENDS,
    BindFact,
    Fact,
    PodSighting,
    by_time,
)
from schemas.ids import microseconds

ADOPTED_WITHIN: Final = timedelta(minutes=10)
"""A bind without a UID is about a pod that is first seen at most this much later: clocks differ, watches lag."""
AGAIN_AFTER: Final = timedelta(seconds=2)
"""A bind this long after the end of a pod belongs to another pod with the same UID; cluster files (``--cluster``)
reuse UIDs."""


class _Span(NamedTuple):
    """When which pod was where."""

    uid: str
    node: str
    started_at: datetime
    until: datetime | None


@dataclass(slots=True)
class PodTimeline:
    """All facts about one pod; with an empty UID those that fit no pod with one."""

    uid: str
    binds: list[BindFact] = field(default_factory=list)
    sights: list[PodSighting] = field(default_factory=list)
    before: list[PodSighting] = field(default_factory=list)
    again: str = ""

    def take(self, fact: Fact) -> None:
        if isinstance(fact, BindFact):
            self.binds.append(fact)
        else:
            self.sights.append(fact)

    @property
    def end(self) -> tuple[datetime, str] | None:
        ends = [sight for sight in self.sights if sight.state in ENDS]
        # A pod that ends is deleted too, and a watcher that sees the deletion may not have seen the phase.
        how = min(ends, key=lambda sight: (sight.state == DELETED, sight.at, sight.state), default=None)
        return (min(sight.at for sight in ends), how.state) if how else None

    @property
    def nodes(self) -> set[str]:
        return ({bind.node for bind in self.binds} | {sight.node for sight in self.sights}) - {""}

    def intervals(self) -> list[PlacementInterval]:
        return [
            PlacementInterval(
                self.uid, node, [bind for bind in self.binds if bind.node == node],
                [sight for sight in self.sights if sight.node in (node, "")], self.end, self.before, self.again,
            )
            for node in sorted(self.nodes)
        ]  # fmt: skip

    def split_at_rebinds(self) -> list["PodTimeline"]:
        """One timeline per bind that came after an end."""
        ends = sorted(sight.at for sight in self.sights if sight.state in ENDS)
        begins: list[datetime] = []
        for bind in sorted(self.binds, key=by_time):
            if any(end + AGAIN_AFTER < bind.at and (not begins or end >= begins[-1]) for end in ends):
                begins.append(bind.at)
        timelines = [PodTimeline(self.uid) for _ in (None, *begins)]
        facts: list[Fact] = [*self.binds, *self.sights]
        for fact in facts:
            timelines[bisect_right(begins, fact.at)].take(fact)
        there = [timeline for timeline in timelines if timeline.nodes]
        for timeline in there[:1]:
            timeline.before = [sight for nowhere in timelines if not nowhere.nodes for sight in nowhere.sights]
        for timeline, at in zip(timelines, (None, *begins), strict=True):
            timeline.again = str(microseconds(at)) if at and timeline is not there[0] else ""
        return there


def _timelines(facts: Iterable[Fact]) -> dict[str, PodTimeline]:
    timelines: dict[str, PodTimeline] = {}
    for fact in facts:
        timelines.setdefault(fact.uid, PodTimeline(fact.uid)).take(fact)
    return timelines


def intervals(facts: Iterable[Fact]) -> list[PlacementInterval]:
    """All intervals, unsorted. A fact without a UID goes to the pod that it fits, else it makes its own intervals."""
    timelines = _timelines(facts)
    nameless = timelines.pop("", PodTimeline(""))
    spans = _spans(timelines)
    rest = [bind for bind in nameless.binds if not _given(bind, _bound(bind, spans), timelines)]
    # Only with their binds is it known since when pods are there.
    spans = _spans(timelines)
    left = [sight for sight in nameless.sights if not _given(sight, _seen(sight, spans), timelines)]
    return [*_parts_of(timelines), *_in_turn([*rest, *left])]


def _parts_of(timelines: Mapping[str, PodTimeline]) -> list[PlacementInterval]:
    return [part for pod in timelines.values() for timeline in pod.split_at_rebinds() for part in timeline.intervals()]


def _given(fact: Fact, uid: str | None, timelines: Mapping[str, PodTimeline]) -> bool:
    if uid:
        timelines[uid].take(fact)
    return bool(uid)


def _spans(timelines: Mapping[str, PodTimeline]) -> list[_Span]:
    intervals = sorted(_parts_of(timelines), key=order)
    spans = []
    for part, later in zip_longest(intervals, intervals[1:]):
        ends = [*([part.end[0]] if part.end else []), *([later.started_at] if later else [])]
        spans.append(_Span(part.uid, part.node, part.started_at, min(ends, default=None)))
    return spans


def _bound(bind: BindFact, spans: Sequence[_Span]) -> str | None:
    """The first pod there that had not ended by then."""
    fits = (
        span.uid
        for span in spans
        if span.node == bind.node
        and (span.until is None or span.until > bind.at)
        and span.started_at - bind.at <= ADOPTED_WITHIN
    )
    return next(fits, None)


def _seen(sight: PodSighting, spans: Sequence[_Span]) -> str | None:
    """The latest pod there that had begun by then, unless it had ended."""
    fits = [
        span.uid
        for span in spans
        if sight.node in ("", span.node)
        and span.started_at <= sight.at
        and (span.until is None or sight.at <= span.until)
    ]
    return fits[-1] if fits else None


def _in_turn(facts: Iterable[Fact]) -> list[PlacementInterval]:
    """Without UIDs: a bind begins an interval, so does a pod that is seen where none was; an end ends it."""
    found: list[PlacementInterval] = []
    for fact in sorted(facts, key=by_time):
        last = found[-1] if found else None
        continues = last is not None and fact.node in ("", last.node) and _belongs(last, fact)
        if not continues and fact.node:
            found.append(PlacementInterval("", fact.node))
        if continues or fact.node:
            _take(found[-1], fact)
    _number_equal_starts(part for part in found if not part.binds)
    return found


def _number_equal_starts(intervals: Iterable[PlacementInterval]) -> None:
    """Number intervals with equal starts: one may end in the instant in which the next was scheduled."""
    before: Counter[tuple[datetime, str]] = Counter()
    for part in intervals:
        begins = part.started_at, part.node
        # The first keeps an empty mark, so that its id is what it was before the second became known.
        part.again = str(before[begins] or "")
        before[begins] += 1


def _belongs(part: PlacementInterval, fact: Fact) -> bool:
    if isinstance(fact, BindFact):
        return part.end is None and not part.binds
    return part.end is None or fact.state in ENDS


def _take(part: PlacementInterval, fact: Fact) -> None:
    if isinstance(fact, BindFact):
        part.binds.append(fact)
        return
    part.sights.append(fact)
    if fact.state in ENDS and part.end is None:
        part.end = fact.at, fact.state

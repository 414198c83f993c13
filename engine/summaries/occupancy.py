"""Derivation of placements, the time of a pod on a node with its devices, from facts: pure.

The *facts* about a pod's name are its binds and sightings. They arrive late, twice and in any order; equal facts give
equal placements. A name may have had many pods, one after the other, which their UIDs separate; a fact without a UID is
attributed to the pod that was there at that time.

    BindFact, PodSighting ──add──▶ Facts ──placements──▶ DerivedPlacement (a placement, and the facts behind it)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from engine.summaries.layer_seconds import WaitTimes, divide_wait, limit_marks, sort_marks
from engine.summaries.pod_facts import (
    DELETED,
    ENDS,
    BindFact,
    Fact,
    LayerMark,
    PodSighting,
    merge_descriptions,
    rank_bind,
    rank_by_time,
    rank_devices,
)
from engine.summaries.pod_timelines import PlacementInterval, derive_intervals, rank_by_start
from schemas.events import PodDescription, PodObserved, PodRef
from schemas.forecasts import StartForecast
from schemas.placements import PodPlacement

REPLACED: Final = "replaced"
MOVED: Final = "moved"

MAX_SIGHTINGS: Final = 128
"""Limit per pod name, of ends and of sightings without a UID; for others the first of each kind is enough."""


@dataclass(frozen=True, slots=True)
class DerivedPlacement:
    """A placement with the facts that it was derived from: enough to derive it again."""

    placement: PodPlacement
    binds: tuple[BindFact, ...]
    sights: tuple[PodSighting, ...]
    bind: BindFact | None
    """The bind that the placement began with."""
    marks: tuple[LayerMark, ...] = ()


def to_sighting(event: PodObserved) -> PodSighting | None:
    """Convert an observed pod to a sighting; None if it names neither a node nor an end."""
    state = DELETED if event.deleted else event.phase
    # A pod that waits occupies nothing.
    if not event.node and state not in ENDS:
        return None
    scheduled_at = (
        condition.last_transition_at
        for condition in event.conditions
        if condition.type == "PodScheduled" and condition.status == "True"
    )
    on_node = event.node != ""
    return PodSighting(
        event.pod.uid,
        event.node,
        state,
        event.observed_at,
        next(scheduled_at, None) if on_node else None,
        event.started_at if on_node else None,
        tuple(event.allocations) if on_node else (),
    )


class Facts:
    """Facts about the pods of one name in one cluster. Order and repetition of ``add`` do not matter."""

    def __init__(self, cluster: str, namespace: str, name: str, facts: Iterable[Fact] = ()) -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self._binds: dict[str, BindFact] = {}
        self._sights: dict[tuple[object, ...], PodSighting] = {}
        self._descriptions: dict[str, PodDescription] = {}
        """By UID."""
        self._marks: dict[str, set[LayerMark]] = {}
        """By UID, the layers that held the pod while it waited."""
        self._forecasts: dict[str, dict[str, StartForecast]] = {}
        """By UID and id, the forecasts that were made while the pod waited."""
        for fact in facts:
            self.add(fact)

    def add(self, fact: Fact) -> bool:
        """Add a fact; True if it was new."""
        return self._add_bind(fact) if isinstance(fact, BindFact) else self._add_sight(fact)

    def mark(self, mark: LayerMark) -> None:
        """Add the layer that held a pod at a time. It adds no placement, and counts when one is derived."""
        # Without a UID it may be of any pod of the name.
        if mark.uid:
            self._marks[mark.uid] = set(limit_marks(self._marks.get(mark.uid, set()) | {mark}))

    def add_forecast(self, forecast: StartForecast) -> None:
        """Add a forecast. As a mark, it adds no placement, and counts when one is derived."""
        self._forecasts.setdefault(forecast.pod.uid, {})[forecast.id] = forecast

    def list_forecasts(self, uid: str) -> list[StartForecast]:
        """List the forecasts for a pod, the earliest first."""
        return sorted(self._forecasts.get(uid, {}).values(), key=lambda forecast: (forecast.given_at, forecast.id))

    def describe(self, uid: str, description: PodDescription | None) -> bool:
        """Add a source's description of where the pod comes from; True if it was new."""
        # Without a UID the description may be of any pod of the name.
        if not uid or description is None:
            return False
        previous = self._descriptions.get(uid)
        merged = merge_descriptions(previous, description)
        if merged is None or merged == previous:
            return False
        self._descriptions[uid] = merged
        return True

    def _add_bind(self, bind: BindFact) -> bool:
        previous = self._binds.get(bind.attempt_id)
        if previous and rank_bind(previous) >= rank_bind(bind):
            return False
        self._binds[bind.attempt_id] = bind
        return True

    def _add_sight(self, sight: PodSighting) -> bool:
        # With a UID a state is a fact that holds from its first sighting on. Without one, and for ends, a later
        # sighting may be about the next pod of that name.
        key = (sight.uid, sight.node, sight.state, sight.time if _counts_each(sight) else None)
        previous = self._sights.get(key)
        first = _merge_sightings(previous, sight) if previous else sight
        self._sights[key] = first
        if len(self._sights) > MAX_SIGHTINGS:
            self._forget_oldest()
        return first != previous

    def _forget_oldest(self) -> None:
        sightings = sorted((sight.time, repr(key), key) for key, sight in self._sights.items() if _counts_each(sight))
        for *_, key in sightings[:-MAX_SIGHTINGS]:
            del self._sights[key]

    def derive_placements(self) -> list[DerivedPlacement]:
        """Derive the placements by time. A pod is on one node at a time, and a name has one pod at a time: the later
        placement ends the earlier one."""
        binds = [bind for bind in self._binds.values() if bind.bound]
        begun = sorted(derive_intervals([*binds, *self._sights.values()]), key=rank_by_start)
        return [self._derive_placement(part, later) for part, later in zip_longest(begun, begun[1:])]

    def _derive_placement(self, part: PlacementInterval, later: "PlacementInterval | None") -> DerivedPlacement:
        until, ended_by = part.end or (None, "")
        if later and (until is None or until > later.started_at):
            is_same = part.uid and (part.uid, part.generation) == (later.uid, later.generation)
            until, ended_by = later.started_at, MOVED if is_same else REPLACED
        bind = part.bind
        judged = (attempt.first_judged_at or attempt.started_at for attempt in part.binds)
        placement = PodPlacement.model_construct(
            cluster=self.cluster,
            id=part.derive_id(self.cluster, f"{self.namespace}/{self.name}"),
            pod=PodRef(namespace=self.namespace, name=self.name, uid=part.uid),
            node=part.node,
            started_at=part.started_at,
            # Two clocks may report the end before the beginning; a placement never has a negative length.
            ended_at=max(until, part.started_at) if until else None,
            ended_by=ended_by,
            scheduler=bind.scheduler if bind else "",
            attempt_id=bind.attempt_id if bind else "",
            phase=part.phase,
            description=self._descriptions.get(part.uid),
            first_judged_at=min(judged, default=None),
            judged_at=bind.judged_at if bind else None,
            bound_at=part.bound_at,
            running_at=part.running_at,
            waited_for=list(bind.waited_for) if bind else [],
            obstacle=bind.obstacle if bind else "",
            allocations=list(part.held),
            forecasts=[forecast for forecast in self.list_forecasts(part.uid) if not forecast.missing],
        )
        marks = sort_marks(self._marks.get(part.uid, ()))
        placement = placement.model_copy(update={"layer_seconds": _divide_wait(placement, marks)})
        sights = sorted(part.sights + part.earlier_ends, key=rank_by_time)
        binds = tuple(sorted(part.binds, key=rank_by_time))
        return DerivedPlacement(placement, binds, tuple(sights), bind, tuple(marks))


def _divide_wait(placement: PodPlacement, marks: Sequence[LayerMark]) -> dict[str, float]:
    since, bound_at = placement.waiting_since, placement.bound_at
    if since is None or bound_at is None:
        return {}
    return divide_wait(WaitTimes(since, placement.judged_at, bound_at, placement.running_at), marks)


def _counts_each(sight: PodSighting) -> bool:
    """Tell whether every sighting of this kind is remembered. For other kinds the first is enough."""
    return not sight.uid or sight.state in ENDS


def _merge_sightings(sight: PodSighting, other: PodSighting) -> PodSighting:
    both = sight, other
    return PodSighting(
        sight.uid,
        sight.node,
        sight.state,
        min(sight.time, other.time),
        min((sighting.scheduled for sighting in both if sighting.scheduled), default=None),
        min((sighting.running_at for sighting in both if sighting.running_at), default=None),
        max((sighting.held for sighting in both), key=rank_devices),
    )

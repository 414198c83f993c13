"""Subjects of inputs (a pod, a node, a workload, a scheduler), and the state in memory of each. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from engine.diagnosis.waiting import derive_wait_without_attempt
from engine.summaries.layer_seconds import NODES
from engine.summaries.node_history import NodeKey
from engine.summaries.occupancy import Facts, to_sighting
from engine.summaries.pod_facts import LayerMark
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput, RefusedAgain
from pipeline.placements.observation_dedup import RecentObservations
from schemas.codec.records import Rejected
from schemas.events import NodeRegistered, PodObserved, PodRef, SchedulerObserved, WorkloadObserved
from schemas.placements import PodPlacement

_MAX_REGISTRATIONS: Final = 8
"""Registrations of one node that differ in their devices. Older ones matter only to pods that held a device through
all of them."""


FORECAST_WITHIN: Final = timedelta(minutes=1)
"""Age of a refusal up to which a start is forecast: later the index knows what the forecast is about."""
FORECAST_EVERY: Final = timedelta(minutes=2)
"""Pause between two tries to forecast the start of one pod."""
MAX_FORECASTS: Final = 16
"""Limit of the forecasts for one pod, those without an interval included."""


# No tuples: keys of different kinds must never be equal.
@dataclass(frozen=True, order=True, slots=True)
class PodKey:
    """The pods of one name, in one of several clusters."""

    cluster: str
    namespace: str
    name: str


@dataclass(frozen=True, order=True, slots=True)
class WorkloadKey:
    cluster: str
    namespace: str
    name: str
    """Kind and name: ``Job/train``."""


@dataclass(frozen=True, order=True, slots=True)
class SchedulerKey:
    """All instances of a scheduler."""

    cluster: str
    name: str


ObservedKey: TypeAlias = WorkloadKey | SchedulerKey
"""Subjects about which only observations are kept."""
Subject: TypeAlias = PodKey | NodeKey | ObservedKey


def get_subject(item: PlacementInput) -> Subject:
    match item:
        case BoundAttempt() | RefusedAgain() | PodObserved():
            return to_pod_key(item.cluster, item.pod)
        case WorkloadObserved() | SchedulerObserved():
            return to_observed_key(item)
        case _:
            return NodeKey(item.cluster, item.node)


def to_observed_key(event: WorkloadObserved | SchedulerObserved) -> ObservedKey:
    if isinstance(event, WorkloadObserved):
        return WorkloadKey(event.cluster, event.namespace, str(event.workload))
    return SchedulerKey(event.cluster, event.scheduler)


def to_pod_key(cluster: str, pod: PodRef) -> PodKey:
    return PodKey(cluster, pod.namespace, pod.name)


class DocumentKey(NamedTuple):
    """Location of a document. A placement that moves to another day has two of them until the older one is deleted."""

    index_name: str
    id: str


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    version: int
    digest: bytes


def to_layer_mark(event: PodObserved) -> LayerMark | None:
    """Convert an observation of a waiting pod to the layer that holds it; None for other observations."""
    if event.deleted or event.node or event.phase != "Pending":
        return None
    wait = derive_wait_without_attempt(event)
    # A pod without an obstacle of its own waits for what its attempts are refused for.
    return LayerMark(event.pod.uid, (wait.layer if wait else "") or NODES, event.observed_at)


@dataclass(slots=True)
class PodState:
    facts: Facts
    recent: RecentObservations
    written: dict[DocumentKey, WrittenDocument] = field(default_factory=dict)
    measured: set[tuple[str, str]] = field(default_factory=set)
    """The waits that were counted: a placement's id, and ``placement`` or ``start``."""
    forecast_tried_at: datetime | None = None
    """Time at which a forecast of the start was tried last."""
    is_written: bool = False
    """True if the documents were compared with the facts since the pod was loaded. An earlier run may have been killed
    between two writes."""

    def learn(self, event: PodObserved) -> bool:
        """Add an observation to the facts about the pod; True if something of it was new."""
        if mark := to_layer_mark(event):
            self.facts.mark(mark)
        sighting = to_sighting(event)
        is_new = sighting is not None and self.facts.add(sighting)
        return self.facts.describe(event.pod.uid, event.description) or is_new

    def is_forecast_due(self, refusal: RefusedAgain, now: datetime) -> bool:
        """Tell whether a forecast is to be made: one with an interval for each obstacle of a pod's wait."""
        forecasts = self.facts.list_forecasts(refusal.pod.uid)
        code = refusal.wait.code if refusal.wait else ""
        tried_at = self.forecast_tried_at
        return (
            now - refusal.started_at <= FORECAST_WITHIN
            and (tried_at is None or now - tried_at >= FORECAST_EVERY)
            and len(forecasts) < MAX_FORECASTS
            and not any(forecast.obstacle == code and not forecast.missing for forecast in forecasts)
        )

    def resume(self, document: PodPlacement | Rejected) -> None:
        """Take what a document has besides its facts: the pod's description, and the waits that were measured."""
        if isinstance(document, Rejected):
            return
        self.facts.describe(document.pod.uid, document.description)
        for forecast in document.forecasts:
            self.facts.add_forecast(forecast)
        waits = (("placement", document.placement_seconds), ("start", document.start_seconds))
        self.measured |= {(document.id, kind) for kind, seconds in waits if seconds is not None}


@dataclass(slots=True)
class TrackedNode:
    recent: dict[tuple[str, str], RecentObservations] = field(default_factory=dict)
    """Observations by kind and scheduler: several schedulers may observe one node."""
    registrations: list[NodeRegistered] = field(default_factory=list)
    """Registrations by time."""

    def register(self, event: NodeRegistered) -> bool:
        """Take a registration; return whether it changes the devices that the node had at some time."""
        # One that arrives late belongs between two others, and may make the later of them a change.
        in_order = sorted([*self.registrations, event], key=lambda registration: registration.observed_at)
        # Only changes are kept: a scheduler registers a node again and again, mostly with the same devices.
        changes = [
            registration
            for index, registration in enumerate(in_order)
            if not index or _digest_devices(registration) != _digest_devices(in_order[index - 1])
        ]
        is_change = changes != self.registrations
        self.registrations = changes[-_MAX_REGISTRATIONS:]
        return is_change


def _digest_devices(event: NodeRegistered) -> tuple[bytes, ...]:
    columns = (event.memory_mib, event.cores_percent, event.slots)
    return "\x1f".join(event.uuid).encode(errors="replace"), *(column.tobytes() for column in columns)

"""Observations of pods and nodes: the list of those of a pod, and the state of a node at one time. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from api.http.cluster import Cluster
from api.http.errors import to_unreadable_error
from api.http.param_types import Milliseconds
from api.index.reading.decoding import decode_document
from api.index.reading.page_query import ListDefinition, ListSource, PagePosition
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term, term_filters, time_range
from schemas.answers.placements import (
    CheckLog,
    DeviceRegistered,
    NodeState,
    PodObservation,
    PodObservations,
    RegistrationLog,
    StatusLog,
)
from schemas.codec.records import Rejected, format_rfc3339, read
from schemas.documents.observations import Observed, read_observation
from schemas.events import NodeChecked, NodeEvent, NodeObserved, NodeRegistered, PodObserved
from schemas.indices import OBSERVATIONS
from schemas.json_types import Json

ObservationsPosition = PagePosition[tuple[Milliseconds, str, str]]

NODE_KINDS: Final = ("node-registered", "node-checked", "node-observed")
# The digest of the content makes the order unique where two observations have the same millisecond.
_SORT: Final = [sort_latest_first("@timestamp"), sort_by("pod_uid"), sort_by("digest")]
_MAX_SCHEDULERS: Final = 50
_MAX_PER_MILLISECOND: Final = 10
"""The index has times in milliseconds: so many events are read, and their own times decide which is the latest."""


def pod_observation_filters(values: Mapping[str, str | None], position: ObservationsPosition) -> list[Json]:
    """The clauses of a search for observations of pods. ``values``: field of the index to its required value."""
    return [
        term("kind", "pod-observed"),
        *term_filters(values),
        *time_range("@timestamp", position.since, position.until),
    ]


def _pod_observation(_: Cluster, hit: Json) -> PodObservation:
    event = decode_document(_pod_event, hit["_source"], hit["_id"])
    return PodObservation(
        observed_at=format_rfc3339(event.observed_at),
        pod_uid=event.pod.uid,
        phase=event.phase,
        node=event.node,
        deleted=event.deleted,
        conditions=event.conditions,
        scheduler=event.scheduler,
        description=event.description,
        devices=event.allocations,
        bind_phase=event.bind_phase,
        started_at=format_rfc3339(event.started_at) if event.started_at else None,
        problems=event.problems,
    )


def _pod_event(source: Json) -> PodObserved | Rejected:
    return read(PodObserved, source.get("event"), "document.event")


POD_OBSERVATIONS_LIST: Final = ListDefinition(
    "pod-observations",
    ListSource(OBSERVATIONS.alias, _SORT, ["kind", "event"]),
    ObservationsPosition,
    _pod_observation,
    PodObservations,
)


def node_observations_query(cluster: str, node: str, at: datetime) -> Json:
    """The body of a search for the latest observations of ``node`` at the time ``at``, by kind and scheduler.

    The API server has the empty name among the schedulers.
    """
    not_later = {"range": {"@timestamp": {"lte": format_rfc3339(at)}}}
    return {
        "query": all_of([of_cluster(cluster), term("node", node), {"terms": {"kind": list(NODE_KINDS)}}, not_later]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"kinds": latest_by_scheduler(_MAX_PER_MILLISECOND)},
    }


def latest_by_scheduler(size: int) -> Json:
    """An aggregation of observations by kind and scheduler, with the ``size`` latest of each."""
    latest = {"size": size, "sort": _SORT, "_source": ["kind", "event"]}
    by_scheduler = {
        # Observations of the cluster itself have no scheduler; without ``missing`` they would be left out.
        "terms": {"field": "scheduler", "size": _MAX_SCHEDULERS, "missing": ""},
        "aggs": {"latest": {"top_hits": latest}},
    }
    return {"terms": {"field": "kind"}, "aggs": {"schedulers": by_scheduler}}


def latest_observations(answer: Json, at: datetime) -> list[Observed]:
    """The latest event of each kind and scheduler in the answer to ``node_observations_query``.

    Raises ``UnreadableError``.
    """
    kinds = answer.get("aggregations", {}).get("kinds", {}).get("buckets", [])
    latest = (
        _latest(scheduler["latest"]["hits"]["hits"], at)
        for kind in kinds
        for scheduler in kind["schedulers"]["buckets"]
    )
    return sorted(filter(None, latest), key=lambda event: (event.source, event.observed_at))


def _latest(hits: Iterable[Json], at: datetime) -> Observed | None:
    # The index compares milliseconds; an event later in the same one has not happened yet at `at`.
    by_then = [event for event in map(_event_of_hit, hits) if event.observed_at <= at]
    return max(by_then, key=lambda event: event.observed_at, default=None)


def _event_of_hit(hit: Json) -> Observed:
    event = read_observation(hit["_source"])
    # Not by ``decode_document``: mypy widens the union ``Observed`` to its base class there.
    if isinstance(event, Rejected):
        raise to_unreadable_error(hit["_id"], str(event))
    return event


def first_observation_query(cluster: str, node: str) -> Json:
    """The body of a search for the time of the first document about ``node``, or about pods on it."""
    first = {"min": {"field": "@timestamp"}}
    return {
        "query": all_of([of_cluster(cluster), term("node", node)]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"first": first},
    }


def first_observed_at(answer: Json) -> datetime | None:
    """The time in the answer to ``first_observation_query``; None where nothing was ever recorded.

    Rounded up to the next millisecond: at that time the document is certainly found, whatever its microseconds are.
    """
    milliseconds = answer.get("aggregations", {}).get("first", {}).get("value")
    return None if milliseconds is None else datetime.fromtimestamp((milliseconds + 1) / 1000, UTC)


def node_state(cluster: Cluster, node: str, at: datetime, observations: Iterable[Observed]) -> NodeState:
    """The state of ``node`` at the time ``at`` from the latest observations by then."""
    events = list(observations)
    time = format_rfc3339(at)
    status = latest_status(events)
    return NodeState(
        node=node,
        at=time,
        registrations=[_registration(event) for event in events if isinstance(event, NodeRegistered)],
        checks=[
            CheckLog(problems=event.problems, **_observed(event)) for event in events if isinstance(event, NodeChecked)
        ],
        status=_status(status) if status else None,
        occupancy=f"{cluster.link_node(node)}/occupancy?at={time}",
    )


def latest_status(observations: Iterable[Observed]) -> NodeObserved | None:
    """What the cluster reports of a node: several processes may, and the latest report counts."""
    statuses = [event for event in observations if isinstance(event, NodeObserved)]
    return max(statuses, key=lambda event: event.observed_at, default=None)


def is_cordoned(status: NodeObserved | None) -> bool | None:
    """Whether the node of the status takes no further pods; None where nobody reported one."""
    return status.unschedulable if status else None


def _observed(event: Observed) -> dict[str, str]:
    """When the event was observed, and who reported it."""
    scheduler = event.scheduler if isinstance(event, NodeEvent) else ""
    return {"observed_at": format_rfc3339(event.observed_at), "reported_by": scheduler or "cluster"}


def _registration(event: NodeRegistered) -> RegistrationLog:
    return RegistrationLog(
        registered=event.registered,
        cause=event.cause,
        handshake=event.handshake,
        devices=list(registered_devices(event)),
        **_observed(event),
    )


def _status(event: NodeObserved) -> StatusLog:
    return StatusLog(
        capacity=event.capacity, allocatable=event.allocatable, conditions=event.conditions,
        cordoned=event.unschedulable, **_observed(event),
    )  # fmt: skip


def registered_devices(event: NodeRegistered) -> Iterator[DeviceRegistered]:
    """The devices of a registration, which holds them as columns, as one object each."""
    names = ("index", "memory_mib", "cores_percent", "slots", "numa")
    columns = zip(*(getattr(event, name).tolist() for name in names), strict=True)
    for uuid, model, mode, healthy, values in zip(
        event.uuid, event.model, event.mode, event.healthy, columns, strict=True
    ):
        numbers = dict(zip(names, values, strict=True))
        cordoned = uuid in event.cordoned
        yield DeviceRegistered(uuid=uuid, model=model, mode=mode, healthy=healthy, cordoned=cordoned, **numbers)

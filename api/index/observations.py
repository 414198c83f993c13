"""Observations: the list of a pod's observations, and the state of a node at one time. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from api.http.cluster import Cluster
from api.http.errors import to_unreadable_error
from api.http.param_types import Milliseconds
from api.index.reading.pages import ListDefinition, ListSource, PagePosition, decode_document
from api.index.reading.query_dsl import (
    combine,
    match_cluster,
    match_term,
    match_terms,
    match_time_range,
    sort_by,
    sort_latest_first,
)
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
"""Number of events read to find the latest: the index has times in milliseconds, the events in microseconds."""


def build_pod_observation_filters(values: Mapping[str, str | None], position: ObservationsPosition) -> list[Json]:
    """Build the clauses of a search for observations of pods. ``values``: field of the index to its required value."""
    return [
        match_term("kind", "pod-observed"),
        *match_terms(values),
        *match_time_range("@timestamp", position.since, position.until),
    ]


def _to_pod_observation(_: Cluster, hit: Json) -> PodObservation:
    event = decode_document(_decode_pod_event, hit["_source"], hit["_id"])
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


def _decode_pod_event(source: Json) -> PodObserved | Rejected:
    return read(PodObserved, source.get("event"), "document.event")


POD_OBSERVATIONS_LIST: Final = ListDefinition(
    "pod-observations",
    ListSource(OBSERVATIONS.alias, _SORT, ["kind", "event"]),
    ObservationsPosition,
    _to_pod_observation,
    PodObservations,
)


def build_node_observations_query(cluster: str, node: str, moment: datetime) -> Json:
    """Build the search for the latest observations of ``node`` at ``moment``, by kind and scheduler.

    The API server has the empty name among the schedulers.
    """
    not_later = {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}
    return {
        "query": combine(
            [match_cluster(cluster), match_term("node", node), {"terms": {"kind": list(NODE_KINDS)}}, not_later]
        ),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"kinds": aggregate_latest_by_scheduler(_MAX_PER_MILLISECOND)},
    }


def aggregate_latest_by_scheduler(size: int) -> Json:
    """Build an aggregation of observations by kind and scheduler, with the ``size`` latest of each."""
    latest = {"size": size, "sort": _SORT}
    by_scheduler = {
        # Observations of the cluster itself have no scheduler; without ``missing`` they would be left out.
        "terms": {"field": "scheduler", "size": _MAX_SCHEDULERS, "missing": ""},
        "aggs": {"latest": {"top_hits": latest}},
    }
    return {"terms": {"field": "kind"}, "aggs": {"schedulers": by_scheduler}}


def parse_latest_observations(answer: Json, moment: datetime) -> list[Observed]:
    """Parse the latest event of each kind and scheduler in the answer to ``build_node_observations_query``.

    Raises ``UnreadableError``.
    """
    kinds = answer.get("aggregations", {}).get("kinds", {}).get("buckets", [])
    latest = (
        _find_latest(scheduler["latest"]["hits"]["hits"], moment)
        for kind in kinds
        for scheduler in kind["schedulers"]["buckets"]
    )
    return sorted(filter(None, latest), key=lambda event: (event.source, event.observed_at))


def _find_latest(hits: Iterable[Json], moment: datetime) -> Observed | None:
    # The index compares milliseconds; an event later in the same millisecond has not happened yet.
    by_then = [event for event in map(_decode_observation, hits) if event.observed_at <= moment]
    return max(by_then, key=lambda event: event.observed_at, default=None)


def _decode_observation(hit: Json) -> Observed:
    event = read_observation(hit["_source"])
    # Not by ``decode_document``: mypy widens the union ``Observed`` to its base class there.
    if isinstance(event, Rejected):
        raise to_unreadable_error(hit["_id"], str(event))
    return event


def build_first_observation_query(cluster: str, node: str) -> Json:
    """Build the search for the time of the first document about ``node``, or about pods on it."""
    first = {"min": {"field": "@timestamp"}}
    return {
        "query": combine([match_cluster(cluster), match_term("node", node)]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"first": first},
    }


def parse_first_observed_at(answer: Json) -> datetime | None:
    """Parse the time in the answer to ``build_first_observation_query``; None without a record.

    It is rounded up to the next millisecond: at that time a query finds the document, whatever its microseconds are.
    """
    milliseconds = answer.get("aggregations", {}).get("first", {}).get("value")
    return None if milliseconds is None else datetime.fromtimestamp((milliseconds + 1) / 1000, UTC)


def describe_node_state(cluster: Cluster, node: str, moment: datetime, observations: Iterable[Observed]) -> NodeState:
    """Describe the state of ``node`` at ``moment`` from the latest observations until then."""
    events = list(observations)
    time = format_rfc3339(moment)
    status = find_latest_status(events)
    return NodeState(
        node=node,
        at=time,
        registrations=[_to_registration(event) for event in events if isinstance(event, NodeRegistered)],
        checks=[
            CheckLog(problems=event.problems, **_describe_origin(event))
            for event in events
            if isinstance(event, NodeChecked)
        ],
        status=_to_status(status) if status else None,
        occupancy=f"{cluster.link_node(node)}/occupancy?at={time}",
    )


def find_latest_status(observations: Iterable[Observed]) -> NodeObserved | None:
    """Find the cluster's latest report of a node, which several processes may send."""
    statuses = [event for event in observations if isinstance(event, NodeObserved)]
    return max(statuses, key=lambda event: event.observed_at, default=None)


def is_cordoned(status: NodeObserved | None) -> bool | None:
    """Tell whether the node takes no further pods; None without a status."""
    return status.unschedulable if status else None


def _describe_origin(event: Observed) -> dict[str, str]:
    """Describe when the event was observed, and who reported it."""
    scheduler = event.scheduler if isinstance(event, NodeEvent) else ""
    return {"observed_at": format_rfc3339(event.observed_at), "reported_by": scheduler or "cluster"}


def _to_registration(event: NodeRegistered) -> RegistrationLog:
    return RegistrationLog(
        registered=event.registered,
        cause=event.cause,
        handshake=event.handshake,
        devices=list(iterate_registered_devices(event)),
        **_describe_origin(event),
    )


def _to_status(event: NodeObserved) -> StatusLog:
    return StatusLog(
        capacity=event.capacity, allocatable=event.allocatable, conditions=event.conditions,
        cordoned=event.unschedulable, **_describe_origin(event),
    )  # fmt: skip


def iterate_registered_devices(event: NodeRegistered) -> Iterator[DeviceRegistered]:
    """Iterate over the devices of a registration, which holds them as columns."""
    names = ("index", "memory_mib", "cores_percent", "slots", "numa")
    columns = zip(*(getattr(event, name).tolist() for name in names), strict=True)
    for uuid, model, mode, healthy, values in zip(
        event.uuid, event.model, event.mode, event.healthy, columns, strict=True
    ):
        numbers = dict(zip(names, values, strict=True))
        cordoned = uuid in event.cordoned
        yield DeviceRegistered(uuid=uuid, model=model, mode=mode, healthy=healthy, cordoned=cordoned, **numbers)

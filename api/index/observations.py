"""What was seen of pods and nodes, asked of the index: the questions, and what its documents say. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from api.handlers.listing import Listing
from api.http.errors import unreadable
from api.index.attempt_reader import readable
from api.index.query_dsl import Kind, PagePosition, all_of, between, by, latest_by, term, terms_of
from schemas.answers.placements import (
    CheckLog,
    DeviceRegistered,
    NodeState,
    PodObservation,
    PodObservations,
    RegistrationLog,
    StatusLog,
)
from schemas.codec.records import Rejected, read, rfc3339
from schemas.documents.observations import Observed, observation_of
from schemas.events import NodeChecked, NodeObserved, NodeRegistered, PodObserved
from schemas.indices import OBSERVATIONS

Json = dict[str, Any]

SeenPosition = PagePosition[tuple[int, str, str]]

NODE_KINDS: Final = ("node-registered", "node-checked", "node-observed")
_SORT: Final = [latest_by("@timestamp"), by("pod_uid"), by("digest")]
"""The digest tells apart what was seen in one millisecond."""
_MOST_SCHEDULERS: Final = 50
_OF_ONE_MILLISECOND: Final = 10
"""The index counts time in milliseconds: which of these is the latest, the events themselves say."""


def conditions(asked: Mapping[str, str | None], within: SeenPosition) -> list[Json]:
    return [term("kind", "pod-observed"), *terms_of(asked), *between("@timestamp", within)]


def _pod_seen(hit: Json) -> PodObservation:
    event = readable(_pod_observed, hit["_source"], hit["_id"])
    return PodObservation(
        observed_at=rfc3339(event.observed_at),
        pod_uid=event.pod.uid,
        phase=event.phase,
        node=event.node,
        deleted=event.deleted,
        conditions=event.conditions,
    )


def _pod_observed(source: Json) -> PodObserved | Rejected:
    return read(PodObserved, source.get("event"), "document.event")


LISTING: Final = Listing(
    "pod-observations", Kind(OBSERVATIONS.alias, _SORT, ["kind", "event"]), SeenPosition, _pod_seen, PodObservations
)


def _event(hit: Json) -> Observed:
    event = observation_of(hit["_source"])
    if isinstance(event, Rejected):
        raise unreadable(hit["_id"], str(event))
    return event


def latest_of_node(node: str, at: datetime) -> Json:
    """The body that asks what every scheduler, and the cluster itself, had last said of a node at a time."""
    latest = {"size": _OF_ONE_MILLISECOND, "sort": _SORT, "_source": ["kind", "event"]}
    by_scheduler = {
        "terms": {"field": "scheduler", "size": _MOST_SCHEDULERS, "missing": ""},
        "aggs": {"latest": {"top_hits": latest}},
    }
    until = {"range": {"@timestamp": {"lte": rfc3339(at)}}}
    return {
        "query": all_of([term("node", node), {"terms": {"kind": list(NODE_KINDS)}}, until]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"kinds": {"terms": {"field": "kind"}, "aggs": {"schedulers": by_scheduler}}},
    }


def said_of_node(answer: Json, at: datetime) -> list[Observed]:
    """What the answer to ``latest_of_node`` holds: the latest of every kind and scheduler."""
    kinds = answer.get("aggregations", {}).get("kinds", {}).get("buckets", [])
    found = (_latest(each["latest"]["hits"]["hits"], at) for kind in kinds for each in kind["schedulers"]["buckets"])
    return sorted(filter(None, found), key=lambda each: (each.source, each.observed_at))


def _latest(hits: Iterable[Json], at: datetime) -> Observed | None:
    events = [event for event in map(_event, hits) if event.observed_at <= at]
    return max(events, key=lambda each: each.observed_at, default=None)


def seen_of_node(node: str) -> Json:
    """The body that asks since when anything was seen of a node, or of pods on it."""
    first = {"min": {"field": "@timestamp"}}
    return {"query": all_of([term("node", node)]), "size": 0, "track_total_hits": False, "aggs": {"first": first}}


def first_seen(answer: Json) -> datetime | None:
    """Rounded up to the millisecond, as finely as the index counts; None where nothing ever was."""
    milliseconds = answer.get("aggregations", {}).get("first", {}).get("value")
    return None if milliseconds is None else datetime.fromtimestamp((milliseconds + 1) / 1000, UTC)


def node_state(node: str, at: datetime, said: Iterable[Observed]) -> NodeState:
    known = list(said)
    moment = rfc3339(at)
    statuses = sorted((each for each in known if isinstance(each, NodeObserved)), key=lambda each: each.observed_at)
    return NodeState(
        node=node,
        at=moment,
        registrations=[_registration(each) for each in known if isinstance(each, NodeRegistered)],
        checks=[CheckLog(problems=each.problems, **_said(each)) for each in known if isinstance(each, NodeChecked)],
        status=_status(statuses[-1]) if statuses else None,
        occupancy=f"/api/v1/nodes/{node}/occupancy?at={moment}",
    )


def _said(event: Observed) -> dict[str, str]:
    scheduler = "" if isinstance(event, PodObserved) else event.scheduler
    return {"observed_at": rfc3339(event.observed_at), "reported_by": scheduler or "cluster"}


def _registration(event: NodeRegistered) -> RegistrationLog:
    return RegistrationLog(
        registered=event.registered,
        cause=event.cause,
        handshake=event.handshake,
        devices=list(registered_devices(event)),
        **_said(event),
    )


def _status(event: NodeObserved) -> StatusLog:
    return StatusLog(
        capacity=event.capacity, allocatable=event.allocatable, conditions=event.conditions, **_said(event)
    )


def registered_devices(event: NodeRegistered) -> Iterator[DeviceRegistered]:
    names = ("index", "memory_mib", "cores_percent", "slots", "numa")
    columns = zip(*(getattr(event, name).tolist() for name in names), strict=True)
    for uuid, model, mode, healthy, numbers in zip(
        event.uuid, event.model, event.mode, event.healthy, columns, strict=True
    ):
        said = dict(zip(names, numbers, strict=True))
        yield DeviceRegistered(uuid=uuid, model=model, mode=mode, healthy=healthy, **said)

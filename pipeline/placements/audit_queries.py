"""What the audits ask the index, and what its answers say: pure.

After a restart they go on from what stands there: the binds and the sightings of the latest hour, and of a node what
was said last. Attempts of which no bind is told are looked for among the documents too.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from pipeline.placements.occupancy_queries import PAGE, Stored, facts_of, stored
from pipeline.sinks.msearch import Search, by_time, in_indices, page_search
from schemas.codec.records import Rejected, read, rfc3339
from schemas.documents.observations import observation_of
from schemas.documents.placements import placement_of
from schemas.events import AttemptEvent, NodeChecked, NodeRegistered, PodObserved, PodRef
from schemas.indices import ATTEMPTS, OBSERVATIONS, OCCUPANCY, Index
from schemas.placements import PodPlacement
from summaries.placement_audit import Placed, Sighting, placed_of
from summaries.pod_timelines import BindFact, PodSighting

UNTOLD_AFTER: Final = timedelta(minutes=5)
"""So long may a bind take to be told."""
_MOST_OF_A_NODE: Final = 64


def latest_stay() -> Search:
    return _latest([{"exists": {"field": "attempt_id"}}], 1, OCCUPANCY)


def binds_since(since: datetime, after: list[Any] | None = None) -> Search:
    return page_search(OCCUPANCY, [{"exists": {"field": "attempt_id"}}, _from(since)], "attempt_id", PAGE, after)


def sightings_since(since: datetime, after: list[Any] | None = None) -> Search:
    return page_search(OBSERVATIONS, [{"term": {"kind": "pod-observed"}}, _from(since)], "pod_uid", PAGE, after)


def checks_of(node: str) -> list[Search]:
    """What was said last of a node: its checks, and its registrations."""
    kinds = ("node-checked", "node-registered")
    return [_latest([{"term": {"kind": kind}}, {"term": {"node": node}}], _MOST_OF_A_NODE) for kind in kinds]


def chosen_without_bind(since: datetime, until: datetime, after: list[Any] | None = None) -> Search:
    """Attempts that began then, whose filter chose a node, and of which no bind is told."""
    fields = [
        "attempt_id",
        "namespace",
        "pod",
        "pod_uid",
        "scheduler",
        "chosen",
        "picked_devices",
        "ended_at",
        "@timestamp",
    ]
    when = {"range": {"@timestamp": {"gte": rfc3339(since), "lt": rfc3339(until)}}}
    filters = [{"term": {"status": "pending"}}, {"exists": {"field": "chosen"}}, when]
    return page_search(ATTEMPTS, filters, "attempt_id", PAGE, after, _source=[*fields, "summary.provenance"])


def stays_on(chosen: Placed) -> Search:
    return _latest([{"term": {"pod_uid": chosen.pod.uid}}, {"term": {"node": chosen.node}}], 4, OCCUPANCY)


def _latest(filters: list[Any], most: int, index: Index = OBSERVATIONS) -> Search:
    body = {"query": {"bool": {"filter": filters}}, "sort": [by_time("desc")], "size": most, "track_total_hits": False}
    return in_indices(index.alias), body


def _from(since: datetime) -> dict[str, Any]:
    return {"range": {"@timestamp": {"gte": rfc3339(since)}}}


def placed_in(hits: Iterable[dict[str, Any]]) -> Iterator[Placed]:
    """The binds that stays began with. Of which vendor their devices are is not said there."""
    for document in stored(hits):
        stay = placement_of(document.id, document.source)
        if not isinstance(stay, Rejected):
            yield from _placed(stay, document)


def _placed(stay: PodPlacement, document: Stored) -> Iterator[Placed]:
    for bind in facts_of(document):
        if isinstance(bind, BindFact) and bind.bound:
            devices = tuple(dict.fromkeys(each.uuid for each in bind.held))
            pod = stay.pod.model_copy(update={"uid": bind.uid})
            yield Placed(bind.attempt_id, pod, bind.scheduler, bind.started_at, bind.node, bind.at, devices)


def said_in(hits: Iterable[dict[str, Any]]) -> Iterator[PodObserved | NodeChecked | NodeRegistered]:
    for hit in hits:
        event = observation_of(hit["_source"])
        if isinstance(event, PodObserved | NodeChecked | NodeRegistered):
            yield event


def began_last(hits: Iterable[dict[str, Any]]) -> datetime | None:
    stays = (placement_of(document.id, document.source) for document in stored(hits))
    return max((stay.started_at for stay in stays if not isinstance(stay, Rejected)), default=None)


def chosen_in(hits: Iterable[dict[str, Any]]) -> Iterator[Placed]:
    """Those that were read from a log are left out: nobody knows what it does not say of binds."""
    for document in (hit["_source"] for hit in hits):
        pod = {"namespace": document.get("namespace"), "name": document.get("pod"), "uid": document.get("pod_uid")}
        said = {name: document.get(name) for name in ("attempt_id", "scheduler")}
        attempt = read(AttemptEvent, said | {"pod": pod, "started_at": document.get("@timestamp")}, "document")
        if isinstance(attempt, AttemptEvent) and attempt.pod.uid and not _was_read(document):
            ended = datetime.fromisoformat(document.get("ended_at") or document["@timestamp"])
            yield placed_of(attempt, document["chosen"], ended, document.get("picked_devices") or (), ())


def _was_read(document: dict[str, Any]) -> bool:
    return bool((document.get("summary") or {}).get("provenance"))


def untold_on(chosen: Placed, hits: Iterable[dict[str, Any]], until: datetime) -> Sighting | None:
    """Where the pod was seen on the node that was chosen for it, before ``until``, and no bind to it is told at all."""
    facts = [fact for document in stored(hits) for fact in facts_of(document)]
    if any(isinstance(fact, BindFact) and fact.bound for fact in facts):
        return None
    seen = (fact.at for fact in facts if isinstance(fact, PodSighting) and fact.node == chosen.node)
    first = min((at for at in seen if chosen.bound_at <= at < until), default=None)
    return _sighting(chosen.pod, chosen.node, first) if first else None


def _sighting(pod: PodRef, node: str, at: datetime) -> Sighting:
    return Sighting(PodObserved(pod=pod, observed_at=at, phase="", node=node).id, pod.uid, node, at)

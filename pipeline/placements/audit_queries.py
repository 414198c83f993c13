"""Searches of the audits, and their answers decoded. No I/O.

After a restart the audits continue from what the index has: the binds and sightings of the latest hour, and the latest
checks and registrations of a node. Attempts without a reported bind are searched for continuously.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from engine.summaries.node_history import NodeKey
from engine.summaries.placement_audit import Placed, Sighting, to_placed
from engine.summaries.pod_facts import BindFact, PodSighting
from pipeline.placements.occupancy_queries import (
    PAGE,
    PLACEMENT_TIEBREAKERS,
    StoredPlacement,
    decode_facts,
    decode_stored,
)
from pipeline.sinks.msearch import Search, search_page, select_indices, sort_by_time
from schemas.codec.records import Rejected, format_rfc3339, read
from schemas.documents.observations import read_observation
from schemas.documents.placements import read_placement
from schemas.events import SCHEDULER, AttemptEvent, NodeChecked, NodeRegistered, PodObserved
from schemas.index_family import Index
from schemas.indices import ATTEMPTS, OBSERVATIONS, OCCUPANCY
from schemas.placements import PodPlacement

BIND_REPORT_TIMEOUT: Final = timedelta(minutes=5)
"""A bind that has not been reported this long after its filter is taken as unreported."""
_MAX_OF_NODE: Final = 64
_ATTEMPT_FIELDS: Final = (
    "cluster",
    "attempt_id",
    "namespace",
    "pod",
    "pod_uid",
    "scheduler",
    "chosen",
    "picked_devices",
    "ended_at",
    "@timestamp",
    "sources",
)


def search_latest_placement() -> Search:
    return _search_latest([{"exists": {"field": "attempt_id"}}], 1, OCCUPANCY)


def search_binds(since: datetime, after: list[Any] | None = None) -> Search:
    # Only placements with a known bind have an attempt.
    return search_page(
        OCCUPANCY, [{"exists": {"field": "attempt_id"}}, _from(since)], PLACEMENT_TIEBREAKERS, PAGE, after
    )


def search_sightings(since: datetime, after: list[Any] | None = None) -> Search:
    return search_page(
        OBSERVATIONS, [{"term": {"kind": "pod-observed"}}, _from(since)], ("cluster", "pod_uid"), PAGE, after
    )


def search_checks(node: NodeKey) -> list[Search]:
    """Search for the latest checks of a node, and its latest registrations."""
    kinds = ("node-checked", "node-registered")
    terms = [{"term": {"cluster": node.cluster}}, {"term": {"node": node.name}}]
    return [_search_latest([{"term": {"kind": kind}}, *terms], _MAX_OF_NODE) for kind in kinds]


def search_chosen_without_bind(since: datetime, until: datetime, after: list[Any] | None = None) -> Search:
    """Search for attempts that began in this time, whose filter chose a node, and whose bind is not reported."""
    began = {"range": {"@timestamp": {"gte": format_rfc3339(since), "lt": format_rfc3339(until)}}}
    filters = [{"term": {"status": "pending"}}, {"exists": {"field": "chosen"}}, began]
    return search_page(ATTEMPTS, filters, ("attempt_id",), PAGE, after, _source=list(_ATTEMPT_FIELDS))


def search_placements_on_chosen(chosen: Placed) -> Search:
    """Search for the placements of the pod on the node that was chosen for it."""
    fields = {"cluster": chosen.cluster, "pod_uid": chosen.pod.uid, "node": chosen.node}
    return _search_latest([{"term": {name: value}} for name, value in fields.items()], 4, OCCUPANCY)


def _search_latest(filters: list[Any], size: int, index: Index = OBSERVATIONS) -> Search:
    body = {
        "query": {"bool": {"filter": filters}},
        "sort": [sort_by_time("desc")],
        "size": size,
        "track_total_hits": False,
    }
    return select_indices(index.alias), body


def _from(since: datetime) -> dict[str, Any]:
    return {"range": {"@timestamp": {"gte": format_rfc3339(since)}}}


def decode_binds(hits: Iterable[dict[str, Any]]) -> Iterator[Placed]:
    """Decode the binds that placements began with. Their ``vendors`` are empty: the documents do not have them."""
    for document in decode_stored(hits):
        placement = read_placement(document.id, document.source)
        if not isinstance(placement, Rejected):
            yield from _decode_placement_binds(placement, document)


def _decode_placement_binds(placement: PodPlacement, document: StoredPlacement) -> Iterator[Placed]:
    for fact in decode_facts(document):
        if isinstance(fact, BindFact) and fact.bound:
            devices = tuple(dict.fromkeys(allocation.uuid for allocation in fact.held))
            # The placement may have learned its UID from a sighting; the bind is audited with what it reported itself.
            pod = placement.pod.model_copy(update={"uid": fact.uid})
            yield Placed(
                placement.cluster, fact.attempt_id, pod, fact.scheduler, fact.started_at, fact.node, fact.time, devices
            )


def decode_observations(hits: Iterable[dict[str, Any]]) -> Iterator[PodObserved | NodeChecked | NodeRegistered]:
    for hit in hits:
        event = read_observation(hit["_source"])
        if isinstance(event, PodObserved | NodeChecked | NodeRegistered):
            yield event


def decode_latest_start(hits: Iterable[dict[str, Any]]) -> datetime | None:
    placements = (read_placement(document.id, document.source) for document in decode_stored(hits))
    starts = (placement.started_at for placement in placements if not isinstance(placement, Rejected))
    return max(starts, default=None)


def decode_chosen(hits: Iterable[dict[str, Any]]) -> Iterator[Placed]:
    """Decode the attempts that ``search_chosen_without_bind`` finds; ``bound_at`` is the end of their filter.

    Attempts that were read from a log are left out: a log may have had no line about the bind.
    """
    for document in (hit["_source"] for hit in hits):
        pod = {"namespace": document.get("namespace"), "name": document.get("pod"), "uid": document.get("pod_uid")}
        fields = {name: document.get(name) for name in ("cluster", "attempt_id", "scheduler")}
        attempt = read(AttemptEvent, fields | {"pod": pod, "started_at": document.get("@timestamp")}, "document")
        if isinstance(attempt, AttemptEvent) and attempt.pod.uid and not _is_from_log(document):
            ended_at = datetime.fromisoformat(document.get("ended_at") or document["@timestamp"])
            yield to_placed(attempt, document["chosen"], ended_at, document.get("picked_devices") or (), ())


def _is_from_log(document: dict[str, Any]) -> bool:
    return SCHEDULER not in (document.get("sources") or ())


def find_sighting_without_bind(chosen: Placed, hits: Iterable[dict[str, Any]], until: datetime) -> Sighting | None:
    """Find the first sighting of the pod on its chosen node before ``until``; None if a bind to that node is
    reported."""
    facts = [fact for document in decode_stored(hits) for fact in decode_facts(document)]
    if any(isinstance(fact, BindFact) and fact.bound for fact in facts):
        return None
    seen_at = (fact.time for fact in facts if isinstance(fact, PodSighting) and fact.node == chosen.node)
    first = min((moment for moment in seen_at if chosen.bound_at <= moment < until), default=None)
    return _make_sighting(chosen, first) if first else None


def _make_sighting(chosen: Placed, seen_at: datetime) -> Sighting:
    # Evidence names the event by its id, which follows from cluster, pod and time alone.
    event = PodObserved(cluster=chosen.cluster, pod=chosen.pod, observed_at=seen_at, phase="", node=chosen.node)
    return Sighting(event.id, chosen.pod.uid, chosen.node, seen_at)

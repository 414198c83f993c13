"""Pod placements (a pod on a node, from when until when): the list of them, and those on a node at one time. Pure.

The index has times in milliseconds, events in microseconds. Queries therefore match a little too much, and the caller
compares the exact times (``PodPlacement.is_on``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from api.http.cluster import Cluster
from api.http.param_types import Milliseconds
from api.index.reading.decoding import decode_document
from api.index.reading.page_query import ListDefinition, ListSource, PagePosition
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term_filters
from schemas.answers.placements import PlacementLog, PodPlacements
from schemas.codec.records import format_rfc3339
from schemas.documents.placements import read_placement
from schemas.indices import NOT_ENDED, OCCUPANCY
from schemas.json_types import Json
from schemas.placements import PodPlacement

PlacementsPosition = PagePosition[tuple[Milliseconds, str, str, str, str]]

MAX_PODS: Final = 10_000
"""The pods of one node at one time: OpenSearch returns no more hits. Kubernetes supports 110 pods a node by default."""
_SORT: Final = [sort_latest_first("@timestamp"), *map(sort_by, ("namespace", "pod", "pod_uid", "node"))]
# Without the fields that only the placements process needs.
_SOURCE: Final = ListSource(OCCUPANCY.alias, _SORT, {"excludes": ["known", "text"]})


def placement_filters(
    values: Mapping[str, str | None], position: PlacementsPosition, *, has_ended: bool | None = None
) -> list[Json]:
    """The clauses of a search for placements that overlap the range, of those that have ended or last, or of both.

    ``values``: field to its required value.
    """
    clauses = term_filters(values)
    if has_ended is not None:
        clauses.append({"exists": {"field": "ended_at"}} if has_ended else NOT_ENDED)
    if position.since:
        clauses.append(_not_ended("lte", position.since))
    if position.until:
        # A placement overlaps the range if it began before the range ends and had not ended when the range begins.
        clauses.append({"range": {"@timestamp": {"lt": position.until}}})
    return clauses


def placements_on_node_query(cluster: str, node: str, device: str | None, at: datetime) -> Json:
    """The body of a search for every placement on ``node`` at the time ``at``; of one device (UUID) if given."""
    return _placements_at(cluster, term_filters({"node": node, "devices": device}), at)


def placements_on_nodes_query(cluster: str, nodes: Sequence[str], at: datetime, since: datetime | None = None) -> Json:
    """The body of a search for every placement on one of ``nodes`` at the time ``at``, or at any from ``since`` on."""
    return _placements_at(cluster, [{"terms": {"node": list(nodes)}}], at, since)


def _placements_at(cluster: str, filters: Sequence[Json], at: datetime, since: datetime | None = None) -> Json:
    began = {"range": {"@timestamp": {"lte": format_rfc3339(at)}}}
    clauses = [of_cluster(cluster), *filters, began, _not_ended("lt", format_rfc3339(since or at))]
    return {
        "query": all_of(clauses),
        "sort": _SORT,
        "size": MAX_PODS,
        "_source": _SOURCE.source,
        "track_total_hits": False,
    }


def _not_ended(operator: str, time: str) -> Json:
    # ``must_not``, because a placement that has not ended has no ``ended_at``, which no range would match.
    return {"bool": {"must_not": [{"range": {"ended_at": {operator: time}}}]}}


def placement_of_hit(hit: Json) -> PodPlacement:
    """Raises ``UnreadableError``."""
    return decode_document(partial(read_placement, hit["_id"]), hit["_source"], hit["_id"])


def placement_item(cluster: Cluster, hit: Json) -> PlacementLog:
    placement = placement_of_hit(hit)
    fields = {
        "namespace": placement.pod.namespace,
        "name": placement.pod.name,
        "pod_uid": placement.pod.uid,
        "node": placement.node,
        "started_at": format_rfc3339(placement.started_at),
        "ended_at": _text(placement.ended_at),
        "ended_by": placement.ended_by,
        "phase": placement.phase,
        "scheduler": placement.scheduler,
        "attempt_id": placement.attempt_id,
        "devices": placement.allocations,
        "description": placement.description,
        "first_judged_at": _text(placement.first_judged_at),
        "judged_at": _text(placement.judged_at),
        "bound_at": _text(placement.bound_at),
        "running_at": _text(placement.running_at),
        "placement_seconds": placement.placement_seconds,
        "start_seconds": placement.start_seconds,
        "waited_for": placement.waited_for,
        "attempt": cluster.link_attempt(placement.attempt_id),
        "schedulerlog": cluster.link_schedulerlog(placement.pod.namespace, placement.pod.name),
    }
    return PlacementLog.model_validate(fields)


def _text(at: datetime | None) -> str | None:
    return format_rfc3339(at) if at else None


PLACEMENTS_LIST: Final = ListDefinition("placements", _SOURCE, PlacementsPosition, placement_item, PodPlacements)

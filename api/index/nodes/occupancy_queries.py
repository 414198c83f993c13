"""Pod placements (a pod's time on a node): their list, and the placements on a node at one time. Pure.

The index has times in milliseconds, events in microseconds. Queries therefore match a little too much, and the caller
compares the exact times (``PodPlacement.is_on``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from api.http.cluster import Cluster
from api.http.param_types import Milliseconds
from api.index.reading.pages import ListDefinition, ListSource, PagePosition, decode_document
from api.index.reading.query_dsl import combine, match_cluster, match_terms, sort_by, sort_latest_first
from schemas.answers.placements import PlacementLog, PodPlacements
from schemas.codec.records import format_rfc3339
from schemas.documents.placements import read_placement
from schemas.indices import NOT_ENDED, OCCUPANCY
from schemas.json_types import Json
from schemas.placements import PodPlacement

PlacementsPosition = PagePosition[tuple[Milliseconds, str, str, str, str]]

MAX_PODS: Final = 10_000
"""Maximum number of pods of a node: OpenSearch returns no more hits. Kubernetes supports 110 pods a node by default."""
_SORT: Final = [sort_latest_first("@timestamp"), *map(sort_by, ("namespace", "pod", "pod_uid", "node"))]
# Without the fields that only the placements process needs.
_SOURCE: Final = ListSource(OCCUPANCY.alias, _SORT, {"excludes": ["known", "text"]})


def build_placement_filters(
    values: Mapping[str, str | None], position: PlacementsPosition, *, has_ended: bool | None = None
) -> list[Json]:
    """Build the clauses of a search for placements that overlap the range: ended ones, present ones, or both.

    ``values``: field to its required value.
    """
    clauses = match_terms(values)
    if has_ended is not None:
        clauses.append({"exists": {"field": "ended_at"}} if has_ended else NOT_ENDED)
    if position.since:
        clauses.append(_match_not_ended("lte", position.since))
    if position.until:
        # A placement overlaps the range if it began before the range ends and had not ended when the range begins.
        clauses.append({"range": {"@timestamp": {"lt": position.until}}})
    return clauses


def build_placements_on_node_query(cluster: str, node: str, device: str | None, moment: datetime) -> Json:
    """Build the search for every placement on ``node`` at ``moment``; of one device (UUID) if given."""
    return _build_placements_query(cluster, match_terms({"node": node, "devices": device}), moment)


def build_placements_on_nodes_query(
    cluster: str, nodes: Sequence[str], moment: datetime, since: datetime | None = None
) -> Json:
    """Build the search for every placement on one of ``nodes`` at ``moment``, or at any time from ``since``."""
    return _build_placements_query(cluster, [{"terms": {"node": list(nodes)}}], moment, since)


def _build_placements_query(
    cluster: str, filters: Sequence[Json], moment: datetime, since: datetime | None = None
) -> Json:
    began = {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}
    clauses = [match_cluster(cluster), *filters, began, _match_not_ended("lt", format_rfc3339(since or moment))]
    return {
        "query": combine(clauses),
        "sort": _SORT,
        "size": MAX_PODS,
        "_source": _SOURCE.source,
        "track_total_hits": False,
    }


def _match_not_ended(operator: str, time: str) -> Json:
    # ``must_not``, because a placement that has not ended has no ``ended_at``, which no range would match.
    return {"bool": {"must_not": [{"range": {"ended_at": {operator: time}}}]}}


def decode_placement(hit: Json) -> PodPlacement:
    """Decode the placement of a hit. Raises ``UnreadableError``."""
    return decode_document(partial(read_placement, hit["_id"]), hit["_source"], hit["_id"])


def to_placement(cluster: Cluster, hit: Json) -> PlacementLog:
    placement = decode_placement(hit)
    fields = {
        "namespace": placement.pod.namespace,
        "name": placement.pod.name,
        "pod_uid": placement.pod.uid,
        "node": placement.node,
        "started_at": format_rfc3339(placement.started_at),
        "ended_at": _to_text(placement.ended_at),
        "ended_by": placement.ended_by,
        "phase": placement.phase,
        "scheduler": placement.scheduler,
        "attempt_id": placement.attempt_id,
        "devices": placement.allocations,
        "description": placement.description,
        "first_judged_at": _to_text(placement.first_judged_at),
        "judged_at": _to_text(placement.judged_at),
        "bound_at": _to_text(placement.bound_at),
        "running_at": _to_text(placement.running_at),
        "placement_seconds": placement.placement_seconds,
        "start_seconds": placement.start_seconds,
        "waited_for": placement.waited_for,
        "obstacle": placement.obstacle,
        "attempt": cluster.link_attempt(placement.attempt_id),
        "schedulerlog": cluster.link_schedulerlog(placement.pod.namespace, placement.pod.name),
    }
    return PlacementLog.model_validate(fields)


def _to_text(moment: datetime | None) -> str | None:
    return format_rfc3339(moment) if moment else None


PLACEMENTS_LIST: Final = ListDefinition("placements", _SOURCE, PlacementsPosition, to_placement, PodPlacements)

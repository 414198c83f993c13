"""Last known registrations of nodes that are unregistered now, changes of their pods since, and their statuses."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from api.index.nodes.holders import count_use
from api.index.nodes.occupancy_queries import build_placements_on_nodes_query, decode_placement
from api.index.observations import aggregate_latest_by_scheduler, parse_latest_observations
from api.index.reading.client import OpenSearch
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import combine, match_cluster, match_term, sort_by, sort_latest_first
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import Vendors
from engine.suggestions.admission import PendingPods
from engine.suggestions.nodes import (
    LastRegistration,
    UnregisteredNodes,
    build_unregistered_nodes,
    list_withheld_nodes,
)
from schemas.codec.records import format_rfc3339
from schemas.documents.devices import read_node_state
from schemas.events import NodeObserved, NodeStateChanged
from schemas.indices import NODE_STATES, OBSERVATIONS, OCCUPANCY
from schemas.json_types import Json
from schemas.placements import PodPlacement

MAX_NODES: Final = 100
"""Maximum number of nodes, those that registered latest: a state of eight devices has a kilobyte."""


def build_last_states_query(cluster: str, nodes: Sequence[str], moment: datetime) -> Json:
    """Build the search for the latest state with devices of each of ``nodes`` until ``moment``."""
    # As in `cluster_states`: the scheduler itself precedes readers of logs, whose epoch is 0.
    order = [sort_by("epoch", "desc", "long"), sort_latest_first("@timestamp"), sort_by("revision", "desc", "long")]
    latest = {"top_hits": {"size": 1, "sort": order, "_source": ["state"]}}
    written = {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}
    by_node = {"terms": {"field": "node", "size": MAX_NODES, "order": {"written": "desc"}}}
    aggregations = {"latest": latest, "written": {"max": {"field": "@timestamp"}}}
    of_nodes = {"terms": {"node": list(nodes)}}
    return {
        "query": combine([match_cluster(cluster), of_nodes, {"exists": {"field": "devices"}}, written]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {**by_node, "aggs": aggregations}},
    }


def build_statuses_query(cluster: str, nodes: Sequence[str], moment: datetime) -> Json:
    """Build the search for the cluster's last report about each of ``nodes`` until ``moment``."""
    clauses = [match_cluster(cluster), match_term("kind", "node-observed"), {"terms": {"node": list(nodes)}}]
    by_node = {"terms": {"field": "node", "size": MAX_NODES}, "aggs": {"kinds": aggregate_latest_by_scheduler(1)}}
    return {
        "query": combine([*clauses, {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": by_node},
    }


async def read_unregistered(
    index: OpenSearch, vendors: Vendors, cluster: str, nodes: Sequence[str], moment: datetime
) -> UnregisteredNodes | None:
    """Read the devices that ``nodes`` would have at ``moment`` with their last registrations; None without nodes."""
    if not nodes:
        return None
    answer = await index.search(NODE_STATES.alias, build_last_states_query(cluster, nodes, moment))
    hits = [bucket["latest"]["hits"]["hits"][0] for bucket in _list_buckets(answer)]
    states = [decode_document(read_node_state, hit["_source"], hit["_id"]) for hit in hits]
    nodes_with_states = {state.node for state in states}
    others = [node for node in nodes if node not in nodes_with_states]
    placements = await _read_placements(index, cluster, states, moment)
    observed: list[NodeObserved] = []
    if others:
        answer = await index.search(OBSERVATIONS.alias, build_statuses_query(cluster, others, moment))
        for bucket in _list_buckets(answer):
            events = parse_latest_observations({"aggregations": bucket}, moment)
            observed += [event for event in events if isinstance(event, NodeObserved)]
    last = [
        _to_last_registration(state, [placement for placement in placements if placement.node == state.node], moment)
        for state in states
    ]
    return build_unregistered_nodes(vendors, last, observed)


async def read_unregistered_for(
    index: OpenSearch, columns: ClusterColumns, cluster: str, waiting: Sequence[PendingPods], moment: datetime
) -> UnregisteredNodes | None:
    """Read the nodes without devices that were offered for waiting pods; None if there are none."""
    attempts = [group.attempt for group in waiting]
    offered = {name for attempt in attempts for name in {*attempt.nodes} - list_withheld_nodes(attempt)}
    names = sorted(name for name in offered if columns.get_entry(name) is None)
    return await read_unregistered(index, columns.vendors, cluster, names, moment)


def _list_buckets(answer: Json) -> list[Json]:
    buckets: list[Json] = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    return buckets


async def _read_placements(
    index: OpenSearch, cluster: str, states: Sequence[NodeStateChanged], moment: datetime
) -> list[PodPlacement]:
    """Read placements that lasted at the last registration of a node, or began since."""
    if not states:
        return []
    since = min(state.observed_at for state in states)
    body = build_placements_on_nodes_query(cluster, [state.node for state in states], moment, since)
    hits = (await index.search(OCCUPANCY.alias, body))["hits"]["hits"]
    return [placement for hit in hits if (placement := decode_placement(hit)).allocations]


def _to_last_registration(
    state: NodeStateChanged, placements: Iterable[PodPlacement], moment: datetime
) -> LastRegistration:
    ended, begun = [], []
    for placement in placements:
        held, holds = placement.is_on(state.observed_at), placement.is_on(moment)
        if held and not holds:
            ended.append(count_use(placement))
        if holds and not held:
            begun.append(count_use(placement))
    return LastRegistration(state, ended, begun)

"""What nodes that are not registered registered last, what their pods did since, and what their status says."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from api.index.nodes.holders import use_of
from api.index.nodes.occupancy_queries import placement_of_hit, placements_on_nodes_query
from api.index.observations import latest_by_scheduler, latest_observations
from api.index.reading.client import OpenSearch
from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import Vendors
from engine.suggestions.for_many import PendingPods
from engine.suggestions.nodes import LastRegistration, UnregisteredNodes, unregistered_nodes
from schemas.codec.records import format_rfc3339
from schemas.documents.node_states import read_node_state
from schemas.events import NodeObserved, NodeStateChanged
from schemas.indices import NODE_STATES, OBSERVATIONS, OCCUPANCY
from schemas.json_types import Json
from schemas.placements import PodPlacement

MAX_NODES: Final = 100
"""Those that registered latest: a state of eight devices has a kilobyte."""


def last_states_query(cluster: str, nodes: Sequence[str], at: datetime) -> Json:
    """The body of a search for the latest state with devices of each of ``nodes`` that was written by ``at``."""
    # As in `cluster_states.latest_states_query`: the scheduler itself before readers of logs, whose epoch is 0.
    order = [sort_by("epoch", "desc", "long"), sort_latest_first("@timestamp"), sort_by("revision", "desc", "long")]
    latest = {"top_hits": {"size": 1, "sort": order, "_source": ["state"]}}
    written = {"range": {"@timestamp": {"lte": format_rfc3339(at)}}}
    by_node = {"terms": {"field": "node", "size": MAX_NODES, "order": {"written": "desc"}}}
    aggregations = {"latest": latest, "written": {"max": {"field": "@timestamp"}}}
    of_nodes = {"terms": {"node": list(nodes)}}
    return {
        "query": all_of([of_cluster(cluster), of_nodes, {"exists": {"field": "devices"}}, written]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {**by_node, "aggs": aggregations}},
    }


def statuses_query(cluster: str, nodes: Sequence[str], at: datetime) -> Json:
    """The body of a search for what the cluster reported last of each of ``nodes`` by ``at``."""
    clauses = [of_cluster(cluster), term("kind", "node-observed"), {"terms": {"node": list(nodes)}}]
    by_node = {"terms": {"field": "node", "size": MAX_NODES}, "aggs": {"kinds": latest_by_scheduler(1)}}
    return {
        "query": all_of([*clauses, {"range": {"@timestamp": {"lte": format_rfc3339(at)}}}]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": by_node},
    }


async def read_unregistered(
    index: OpenSearch, vendors: Vendors, cluster: str, nodes: Sequence[str], at: datetime
) -> UnregisteredNodes | None:
    """The devices that ``nodes`` would have at this time, were they registered as they last were; None of no nodes."""
    if not nodes:
        return None
    answer = await index.search(NODE_STATES.alias, last_states_query(cluster, nodes, at))
    hits = [bucket["latest"]["hits"]["hits"][0] for bucket in _buckets(answer)]
    states = [decode_document(read_node_state, hit["_source"], hit["_id"]) for hit in hits]
    known = {state.node for state in states}
    others = [node for node in nodes if node not in known]
    placements = await _placements(index, cluster, states, at)
    observed: list[NodeObserved] = []
    if others:
        answer = await index.search(OBSERVATIONS.alias, statuses_query(cluster, others, at))
        for bucket in _buckets(answer):
            events = latest_observations({"aggregations": bucket}, at)
            observed += [event for event in events if isinstance(event, NodeObserved)]
    last = [
        _last(state, [placement for placement in placements if placement.node == state.node], at) for state in states
    ]
    return unregistered_nodes(vendors, last, observed)


async def unregistered_for(
    index: OpenSearch, columns: ClusterColumns, cluster: str, waiting: Sequence[PendingPods], at: datetime
) -> UnregisteredNodes | None:
    """The nodes without devices that were offered for waiting pods; None where there are none."""
    offered = {name for group in waiting for name in group.attempt.nodes}
    names = sorted(name for name in offered if columns.entry(name) is None)
    return await read_unregistered(index, columns.vendors, cluster, names, at)


def _buckets(answer: Json) -> list[Json]:
    found: list[Json] = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    return found


async def _placements(
    index: OpenSearch, cluster: str, states: Sequence[NodeStateChanged], at: datetime
) -> list[PodPlacement]:
    """Those that lasted when a node was last registered, or began since."""
    if not states:
        return []
    since = min(state.observed_at for state in states)
    body = placements_on_nodes_query(cluster, [state.node for state in states], at, since)
    hits = (await index.search(OCCUPANCY.alias, body))["hits"]["hits"]
    return [placement for hit in hits if (placement := placement_of_hit(hit)).allocations]


def _last(state: NodeStateChanged, placements: Iterable[PodPlacement], at: datetime) -> LastRegistration:
    ended, begun = [], []
    for placement in placements:
        held, holds = placement.is_on(state.observed_at), placement.is_on(at)
        if held and not holds:
            ended.append(use_of(placement))
        if holds and not held:
            begun.append(use_of(placement))
    return LastRegistration(state, ended, begun)

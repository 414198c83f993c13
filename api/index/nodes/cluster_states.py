"""Reader of the node states of a cluster: those of an attempt, or the latest at a time, and the cordoned nodes then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api.index.attempts.attempt_reader import read_states
from api.index.reading.client import OpenSearch
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import combine, match_cluster, match_term, match_terms, sort_by, sort_latest_first
from schemas.codec.records import format_rfc3339
from schemas.documents.devices import read_node_state
from schemas.events import NO_STATE, AttemptSummarized, NodeStateChanged
from schemas.events.node_states import build_state_id
from schemas.indices import DEVICES, NODE_STATES, OBSERVATIONS
from schemas.json_types import Json

PAGE: Final = 500
"""Number of states that one search returns: the state of a node with eight devices has about a kilobyte."""
MAX_RECORDS: Final = 10_000
_REFERENCES: Final = [f"record.{name}" for name in ("scheduler", "epoch", "nodes", "revision")]
_WRITTEN_AGAIN: Final = timedelta(hours=25)
"""Time within which a valid state is written again: once a day, and an hour more for a slow writer."""


@dataclass(frozen=True, slots=True)
class ClusterStates:
    states: list[NodeStateChanged]
    """States, one for each node, in the order of the nodes' names."""
    without_devices: list[str]
    """Judged nodes without a state in the records."""
    missing: list[str]
    """Ids of states of the records that the index does not have."""


def build_references_query(cluster: str, attempt_id: str) -> Json:
    """Build the search for the states to which an attempt's device records refer, without their verdicts."""
    return {
        "query": combine([match_cluster(cluster), match_term("attempt_id", attempt_id)]),
        "size": MAX_RECORDS,
        "_source": _REFERENCES,
        "track_total_hits": False,
    }


async def read_states_of_attempt(index: OpenSearch, summary: AttemptSummarized, original_id: str) -> ClusterStates:
    """Read the states that the attempt judged. ``original_id``: the attempt that has the device records."""
    body = build_references_query(summary.cluster, original_id)
    answer = await index.search(DEVICES.join_names(summary.started_at), body)
    ids: dict[str, str] = {}
    for hit in answer["hits"]["hits"]:
        record = hit["_source"]["record"]
        # Every container names a node with the same revision: one decision sees one state of each node.
        for node, revision in zip(record["nodes"], record["revision"], strict=True):
            if revision != NO_STATE:
                ids[node] = build_state_id(summary.cluster, record["scheduler"], node, record.get("epoch", 0), revision)
    states: dict[str, NodeStateChanged] = {}
    for batch in _split_into_batches(sorted(ids.values())):
        states |= await read_states(index, summary.started_at, batch)
    return ClusterStates(
        states=[states[ids[node]] for node in sorted(ids) if ids[node] in states],
        without_devices=[node for node in summary.nodes if node not in ids],
        missing=[name for name in sorted(ids.values()) if name not in states],
    )


def _split_into_batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]


def build_latest_states_query(cluster: str, scheduler: str | None, moment: datetime, after: str | None) -> Json:
    """Build the search for the latest state at ``moment`` of ``PAGE`` nodes after ``after``, by name."""
    composite: Json = {"size": PAGE, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    # The scheduler itself precedes readers of logs, whose epoch is 0; within an epoch the last state counts.
    order = [sort_by("epoch", "desc", "long"), sort_latest_first("@timestamp"), sort_by("revision", "desc", "long")]
    latest = {"top_hits": {"size": 1, "sort": order, "_source": ["state"]}}
    written = {"range": {"@timestamp": {"gt": format_rfc3339(moment - _WRITTEN_AGAIN), "lte": format_rfc3339(moment)}}}
    return {
        "query": combine([match_cluster(cluster), *match_terms({"scheduler": scheduler}), written]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {"composite": composite, "aggs": {"latest": latest}}},
    }


async def read_states_at(index: OpenSearch, cluster: str, scheduler: str | None, moment: datetime) -> ClusterStates:
    """Read the latest state of each node at ``moment``, of ``scheduler`` if one is given."""
    states: list[NodeStateChanged] = []
    after: str | None = None
    while True:
        answer = await index.search(NODE_STATES.alias, build_latest_states_query(cluster, scheduler, moment, after))
        nodes = answer.get("aggregations", {}).get("nodes", {})
        buckets = nodes.get("buckets", [])
        for bucket in buckets:
            (hit,) = bucket["latest"]["hits"]["hits"]
            states.append(decode_document(read_node_state, hit["_source"], hit["_id"]))
        if len(buckets) < PAGE:
            # A state without a node has devices whose node a log does not name.
            return ClusterStates([state for state in states if state.node and state.uuid], [], [])
        after = nodes["after_key"]["node"]


_STATUS_PAGE: Final = 1_000
"""Number of nodes that one search returns, with a single field each."""


def build_statuses_query(cluster: str, moment: datetime, after: str | None) -> Json:
    """Build the search for the last reports until ``moment`` of ``_STATUS_PAGE`` nodes after ``after``, by name."""
    composite: Json = {"size": _STATUS_PAGE, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    sort = [sort_latest_first("@timestamp")]
    latest = {"top_hits": {"size": 1, "sort": sort, "_source": ["event.unschedulable"]}}
    by_then = {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}
    return {
        "query": combine([match_cluster(cluster), match_term("kind", "node-observed"), by_then]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {"composite": composite, "aggs": {"latest": latest}}},
    }


async def read_cordoned_nodes(index: OpenSearch, cluster: str, moment: datetime) -> frozenset[str]:
    """Read the names of nodes that were cordoned at ``moment``. Raises as ``OpenSearch.search``."""
    cordoned: set[str] = set()
    after: str | None = None
    while True:
        answer = await index.search(OBSERVATIONS.alias, build_statuses_query(cluster, moment, after))
        nodes = answer.get("aggregations", {}).get("nodes", {})
        buckets = nodes.get("buckets", [])
        for bucket in buckets:
            (hit,) = bucket["latest"]["hits"]["hits"]
            if hit["_source"].get("event", {}).get("unschedulable"):
                cordoned.add(bucket["key"]["node"])
        if len(buckets) < _STATUS_PAGE:
            return frozenset(cordoned)
        after = nodes["after_key"]["node"]

"""Reads the node states of a whole cluster: those that an attempt refers to, or the latest ones at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api.index.attempts.attempt_reader import read_states
from api.index.reading.client import OpenSearch
from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term, term_filters
from schemas.codec.records import format_rfc3339
from schemas.documents.node_states import read_node_state
from schemas.events import NO_STATE, AttemptSummarized, NodeStateChanged
from schemas.events.node_states import build_state_id
from schemas.indices import DEVICES, NODE_STATES
from schemas.json_types import Json

PAGE: Final = 500
"""States that one search returns: of a node with eight devices, one has about a kilobyte."""
MAX_RECORDS: Final = 10_000
_REFERENCES: Final = [f"record.{name}" for name in ("scheduler", "epoch", "nodes", "revision")]
_WRITTEN_AGAIN: Final = timedelta(hours=25)
"""A state that still holds is written once a day; an hour more for a writer that is behind."""


@dataclass(frozen=True, slots=True)
class ClusterStates:
    states: list[NodeStateChanged]
    """One state for each node, in the order of their names."""
    without_devices: list[str]
    """Nodes that were judged and that the records refer to no state of."""
    missing: list[str]
    """Ids of states that the records refer to and the index does not have."""


def references_query(cluster: str, attempt_id: str) -> Json:
    """The body of a search for the states that an attempt's device records refer to; without their verdicts."""
    return {
        "query": all_of([of_cluster(cluster), term("attempt_id", attempt_id)]),
        "size": MAX_RECORDS,
        "_source": _REFERENCES,
        "track_total_hits": False,
    }


async def read_states_of_attempt(index: OpenSearch, summary: AttemptSummarized, original_id: str) -> ClusterStates:
    """The states that the attempt judged. ``original_id``: the attempt that has the device records."""
    body = references_query(summary.cluster, original_id)
    answer = await index.search(DEVICES.name(summary.started_at), body)
    ids: dict[str, str] = {}
    for hit in answer["hits"]["hits"]:
        record = hit["_source"]["record"]
        # Every container names a node with the same revision: one decision sees one state of each.
        for node, revision in zip(record["nodes"], record["revision"], strict=True):
            if revision != NO_STATE:
                ids[node] = build_state_id(summary.cluster, record["scheduler"], node, record.get("epoch", 0), revision)
    found: dict[str, NodeStateChanged] = {}
    for batch in _batches(sorted(ids.values())):
        found |= await read_states(index, summary.started_at, batch)
    return ClusterStates(
        states=[found[ids[node]] for node in sorted(ids) if ids[node] in found],
        without_devices=[node for node in summary.nodes if node not in ids],
        missing=[name for name in sorted(ids.values()) if name not in found],
    )


def _batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]


def latest_states_query(cluster: str, scheduler: str | None, at: datetime, after: str | None) -> Json:
    """The body of a search for the latest state by ``at`` of ``PAGE`` nodes behind ``after``, by name."""
    composite: Json = {"size": PAGE, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    # The scheduler itself before readers of logs, whose epoch is 0; of one epoch, the one that was written last.
    order = [sort_by("epoch", "desc", "long"), sort_latest_first("@timestamp"), sort_by("revision", "desc", "long")]
    latest = {"top_hits": {"size": 1, "sort": order, "_source": ["state"]}}
    written = {"range": {"@timestamp": {"gt": format_rfc3339(at - _WRITTEN_AGAIN), "lte": format_rfc3339(at)}}}
    return {
        "query": all_of([of_cluster(cluster), *term_filters({"scheduler": scheduler}), written]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {"composite": composite, "aggs": {"latest": latest}}},
    }


async def read_states_at(index: OpenSearch, cluster: str, scheduler: str | None, at: datetime) -> ClusterStates:
    """The latest state of each node by the time ``at``, of ``scheduler`` if that is given."""
    states: list[NodeStateChanged] = []
    after: str | None = None
    while True:
        answer = await index.search(NODE_STATES.alias, latest_states_query(cluster, scheduler, at, after))
        nodes = answer.get("aggregations", {}).get("nodes", {})
        buckets = nodes.get("buckets", [])
        for bucket in buckets:
            (hit,) = bucket["latest"]["hits"]["hits"]
            states.append(decode_document(read_node_state, hit["_source"], hit["_id"]))
        if len(buckets) < PAGE:
            # A state without a node has devices of which a log does not say the node.
            return ClusterStates([state for state in states if state.node and state.uuid], [], [])
        after = nodes["after_key"]["node"]

"""Reader of the node states of a cluster: those of an attempt, or the latest at a time, and the cordoned nodes then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api.index.attempts.attempt_reader import read_states
from api.index.reading.client import OpenSearch
from api.index.reading.pages import decode_document, iterate_buckets
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


async def read_states_at(index: OpenSearch, cluster: str, scheduler: str | None, moment: datetime) -> ClusterStates:
    """Read the latest state of each node at ``moment``, of ``scheduler`` if one is given."""
    # The scheduler itself precedes readers of logs, whose epoch is 0; within an epoch the last state counts.
    order = [sort_by("epoch", "desc", "long"), sort_latest_first("@timestamp"), sort_by("revision", "desc", "long")]
    latest = {"latest": {"top_hits": {"size": 1, "sort": order, "_source": ["state"]}}}
    written = {"range": {"@timestamp": {"gt": format_rfc3339(moment - _WRITTEN_AGAIN), "lte": format_rfc3339(moment)}}}
    clauses = [match_cluster(cluster), *match_terms({"scheduler": scheduler}), written]
    states: list[NodeStateChanged] = []
    async for bucket in iterate_buckets(index, NODE_STATES.alias, clauses, "nodes", ("node",), latest, size=PAGE):
        (hit,) = bucket["latest"]["hits"]["hits"]
        states.append(decode_document(read_node_state, hit["_source"], hit["_id"]))
    # A state without a node has devices whose node a log does not name.
    return ClusterStates([state for state in states if state.node and state.uuid], [], [])


_STATUS_PAGE: Final = 1_000
"""Number of nodes that one search returns, with a single field each."""


async def read_cordoned_nodes(index: OpenSearch, cluster: str, moment: datetime) -> frozenset[str]:
    """Read the names of nodes that were cordoned at ``moment``. Raises as ``OpenSearch.search``."""
    sort = [sort_latest_first("@timestamp")]
    latest = {"latest": {"top_hits": {"size": 1, "sort": sort, "_source": ["event.unschedulable"]}}}
    by_then = {"range": {"@timestamp": {"lte": format_rfc3339(moment)}}}
    clauses = [match_cluster(cluster), match_term("kind", "node-observed"), by_then]
    cordoned: set[str] = set()
    async for bucket in iterate_buckets(
        index, OBSERVATIONS.alias, clauses, "nodes", ("node",), latest, size=_STATUS_PAGE
    ):
        (hit,) = bucket["latest"]["hits"]["hits"]
        if hit["_source"].get("event", {}).get("unschedulable"):
            cordoned.add(bucket["key"]["node"])
    return frozenset(cordoned)

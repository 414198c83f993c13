"""Reads which nodes of a cluster take no further pods, as after ``kubectl cordon``."""

from datetime import datetime
from typing import Final

from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import all_of, of_cluster, sort_latest_first, term
from schemas.codec.records import format_rfc3339
from schemas.indices import OBSERVATIONS
from schemas.json_types import Json

PAGE: Final = 1_000
"""Nodes that one search returns, of each a single field."""


def statuses_query(cluster: str, at: datetime, after: str | None) -> Json:
    """The body of a search for what the cluster reported last by ``at`` of ``PAGE`` nodes behind ``after``, by name."""
    composite: Json = {"size": PAGE, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    sort = [sort_latest_first("@timestamp")]
    latest = {"top_hits": {"size": 1, "sort": sort, "_source": ["event.unschedulable"]}}
    by_then = {"range": {"@timestamp": {"lte": format_rfc3339(at)}}}
    return {
        "query": all_of([of_cluster(cluster), term("kind", "node-observed"), by_then]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": {"composite": composite, "aggs": {"latest": latest}}},
    }


async def read_cordoned_nodes(index: OpenSearch, cluster: str, at: datetime) -> frozenset[str]:
    """The nodes that were cordoned at this time. Raises as ``OpenSearch.search``."""
    cordoned: set[str] = set()
    after: str | None = None
    while True:
        answer = await index.search(OBSERVATIONS.alias, statuses_query(cluster, at, after))
        nodes = answer.get("aggregations", {}).get("nodes", {})
        buckets = nodes.get("buckets", [])
        for bucket in buckets:
            (hit,) = bucket["latest"]["hits"]["hits"]
            if hit["_source"].get("event", {}).get("unschedulable"):
                cordoned.add(bucket["key"]["node"])
        if len(buckets) < PAGE:
            return frozenset(cordoned)
        after = nodes["after_key"]["node"]

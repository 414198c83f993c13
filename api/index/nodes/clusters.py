"""Which clusters the index has records of. Pure."""

from typing import Final

from api.http.cluster import CLUSTER
from schemas.answers.clusters import ClusterFound
from schemas.indices import ATTEMPTS, OBSERVATIONS
from schemas.json_types import Json

CLUSTERS_ALIASES: Final = f"{ATTEMPTS.alias},{OBSERVATIONS.alias}"
"""What was decided, and what was only observed."""
_MAX_CLUSTERS: Final = 1_000


def clusters_query() -> Json:
    """The body of a search for the names of all clusters with the times of their first and last records."""
    times = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    by_name = {"terms": {"field": "cluster", "size": _MAX_CLUSTERS, "order": {"_key": "asc"}}, "aggs": times}
    return {"size": 0, "track_total_hits": False, "aggs": {"clusters": by_name}}


def clusters_found(answer: Json, default_cluster: str) -> list[ClusterFound]:
    """The clusters in the answer to ``clusters_query``, by name. The default one is among them, even without data."""
    buckets = answer.get("aggregations", {}).get("clusters", {}).get("buckets", [])
    last = {bucket["key"]: str(bucket["last"]["value_as_string"]) for bucket in buckets}
    first = {bucket["key"]: str(bucket["first"]["value_as_string"]) for bucket in buckets}
    return [
        ClusterFound(
            name=name,
            is_default=name == default_cluster,
            first_record_at=first.get(name),
            last_record_at=last.get(name),
            path=CLUSTER.format(cluster=name),
        )
        for name in sorted({default_cluster, *last})
    ]

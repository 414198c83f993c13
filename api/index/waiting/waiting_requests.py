"""Requests of waiting pods: pods of one workload with the same request and the same obstacle are one group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.index.attempts.attempt_queries import FULL_SUMMARY
from api.index.attempts.attempt_reader import resolve_retries
from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import combine, match_cluster
from api.index.waiting.waiting_pods import LONGEST_WAIT, build_waiting_filters
from engine.suggestions.admission import PendingPods
from schemas.documents.attempts import read_summary
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS, POD_STATES
from schemas.json_types import Json

MAX_GROUPS: Final = 50
"""Maximum number of groups, those with the most pods. One complete attempt of each is read, of up to some 100 KB."""


@dataclass(frozen=True, slots=True)
class WaitingRequests:
    """Waiting pods by request.

    pods: number of waiting pods. requests: longest wait first; without pods whose request the index lacks.
    """

    pods: int
    requests: list[PendingPods]


def build_requests_query(cluster: str, namespace: str | None, since: str) -> Json:
    """Build the search for refused pods by workload, request and obstacle.

    since: earliest time of their latest attempts (RFC 3339).
    """
    example = {"top_hits": {"size": 1, "sort": LONGEST_WAIT, "_source": ["attempt_id"]}}
    # The state of an older worker has no obstacle, and without ``missing`` would be in no group.
    fields = [{"field": "group"}, {"field": "obstacle_group", "missing": ""}]
    groups = {"terms": fields, "size": MAX_GROUPS, "order": [{"_count": "desc"}, {"first": "asc"}]}
    first = {"min": {"field": "first_judged_at"}}
    return {
        # Only failed attempts: a pod whose bind has no result yet may hold devices.
        "query": build_waiting_filters(cluster, {"namespace": namespace, "status": "failed"}, since),
        "size": 0,
        "track_total_hits": True,
        "aggs": {"requests": {"multi_terms": groups, "aggs": {"first": first, "example": example}}},
    }


async def read_waiting_requests(index: OpenSearch, cluster: str, namespace: str | None, since: str) -> WaitingRequests:
    """Read the requests of waiting pods of a namespace, or of all. Raises ``UnreadableError`` and as the index."""
    answer = await index.search(POD_STATES.alias, build_requests_query(cluster, namespace, since))
    buckets = answer.get("aggregations", {}).get("requests", {}).get("buckets", [])
    buckets = sorted(buckets, key=lambda bucket: bucket["first"]["value"])
    examples = [bucket["example"]["hits"]["hits"][0]["_source"]["attempt_id"] for bucket in buckets]
    attempts = await _read_attempts(index, cluster, examples)
    groups = [
        PendingPods(attempts[name], bucket["key"][0].partition("/")[2], bucket["doc_count"])
        for name, bucket in zip(examples, buckets, strict=True)
        if name in attempts
    ]
    return WaitingRequests(answer["hits"]["total"]["value"], groups)


async def _read_attempts(index: OpenSearch, cluster: str, names: Sequence[str]) -> dict[str, AttemptSummarized]:
    """Read the complete attempts in the index, by id."""
    if not names:
        return {}
    by_id = {"terms": {"attempt_id": list(names)}}
    body = {"query": combine([match_cluster(cluster), by_id]), "size": len(names), "_source": FULL_SUMMARY}
    hits = (await index.search(ATTEMPTS.alias, body))["hits"]["hits"]
    locations = [(hit["_index"], hit["_id"]) for hit in hits]
    sources = {hit["_id"]: hit["_source"] for hit in hits}
    return await resolve_retries(index, locations, sources, FULL_SUMMARY, read_summary)

"""What the pods that wait ask for: those of one workload that ask for the same and are kept out by the same are one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.index.attempts.attempt_queries import WHOLE_SUMMARY
from api.index.attempts.attempt_reader import resolve_retries
from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import all_of, of_cluster
from api.index.waiting.waiting_pods import LONGEST_WAIT, waiting_filters
from engine.suggestions.for_many import PendingPods
from schemas.documents.attempts import read_summary
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS, POD_STATES
from schemas.json_types import Json

MAX_GROUPS: Final = 50
"""Those with the most pods. The latest attempt of one pod of each is read as a whole, up to some 100 KB each."""


@dataclass(frozen=True, slots=True)
class WaitingRequests:
    """pods: how many wait. requests: the longest wait first; pods of which the index lacks the request are in none."""

    pods: int
    requests: list[PendingPods]


def requests_query(cluster: str, namespace: str | None, since: str) -> Json:
    """The body of a search for pods that were refused, by workload, by what they ask for and by what refused them.

    since: their latest attempt is not older (RFC 3339).
    """
    example = {"top_hits": {"size": 1, "sort": LONGEST_WAIT, "_source": ["attempt_id"]}}
    # A state that an older worker wrote names no obstacle, and would be in no group.
    fields = [{"field": "group"}, {"field": "obstacle_group", "missing": ""}]
    groups = {"terms": fields, "size": MAX_GROUPS, "order": [{"_count": "desc"}, {"first": "asc"}]}
    first = {"min": {"field": "first_judged_at"}}
    return {
        # One whose bind has no result may hold devices.
        "query": waiting_filters(cluster, {"namespace": namespace, "status": "failed"}, since),
        "size": 0,
        "track_total_hits": True,
        "aggs": {"requests": {"multi_terms": groups, "aggs": {"first": first, "example": example}}},
    }


async def read_waiting_requests(index: OpenSearch, cluster: str, namespace: str | None, since: str) -> WaitingRequests:
    """What the waiting pods of a namespace ask for, or of all. Raises ``UnreadableError`` and as of the index."""
    answer = await index.search(POD_STATES.alias, requests_query(cluster, namespace, since))
    buckets = answer.get("aggregations", {}).get("requests", {}).get("buckets", [])
    buckets = sorted(buckets, key=lambda bucket: bucket["first"]["value"])
    examples = [bucket["example"]["hits"]["hits"][0]["_source"]["attempt_id"] for bucket in buckets]
    attempts = await _read_attempts(index, cluster, examples)
    found = [
        PendingPods(attempts[name], bucket["key"][0].partition("/")[2], bucket["doc_count"])
        for name, bucket in zip(examples, buckets, strict=True)
        if name in attempts
    ]
    return WaitingRequests(answer["hits"]["total"]["value"], found)


async def _read_attempts(index: OpenSearch, cluster: str, names: Sequence[str]) -> dict[str, AttemptSummarized]:
    """By id, the attempts that the index has as a whole."""
    if not names:
        return {}
    by_id = {"terms": {"attempt_id": list(names)}}
    body = {"query": all_of([of_cluster(cluster), by_id]), "size": len(names), "_source": WHOLE_SUMMARY}
    hits = (await index.search(ATTEMPTS.alias, body))["hits"]["hits"]
    locations = [(hit["_index"], hit["_id"]) for hit in hits]
    sources = {hit["_id"]: hit["_source"] for hit in hits}
    return await resolve_retries(index, locations, sources, WHOLE_SUMMARY, read_summary)

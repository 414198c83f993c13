"""Which pods wait now, from the latest state of each: a page of them, or of their workloads.

Pages of pods need no point in time: since when a pod waits, and its name, do not change while it waits.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from api.http.cluster import Cluster
from api.http.continue_token import Position
from api.index.query_dsl import Json, all_of, of_cluster, sort_by, term, term_filters, time_range
from schemas.answers.waiting import PodWaiting, WorkloadWaiting
from schemas.documents.pod_states import WAITING

MAX_EXAMPLES: Final = 3
MAX_WORKLOADS: Final = 10_000
"""A list of workloads ends there; the pods of the others are counted nevertheless."""
_MAX_REASONS: Final = 200
_EXACT: Final = 40_000
"""OpenSearch counts distinct values exactly up to there, and nearly so above."""
_FIELDS: Final = [
    "@timestamp", "attempt_id", "namespace", "pod", "pod_uid", "scheduler", "status", "reasons", "workload",
    "pod_group", "queue", "priority_class", "created_at", "first_judged_at", "attempts",
]  # fmt: skip
_LONGEST_WAIT: Final = [sort_by("first_judged_at", "asc", "date"), sort_by("namespace"), sort_by("pod")]
_REASONS: Final = {"terms": {"field": "reasons", "size": _MAX_REASONS}}
_FIRST: Final = {"min": {"field": "first_judged_at"}}


class PodsPosition(Position):
    """Where a page of waiting pods begins."""

    since: str
    """RFC 3339: a duration is resolved at the first page and stays what it was then."""
    sort: tuple[int, str, str]
    """The sort values of the last pod of the page before."""


class WorkloadsPosition(Position):
    """Where a page of workloads begins."""

    since: str
    """As of pods."""
    shown: int
    """How many workloads the pages before have."""
    last: tuple[int, int, str]
    """``workload_order`` of the last of them."""


def waiting_filters(cluster: str, values: Mapping[str, str | None], since: str) -> Json:
    """The query for pods that wait and were tried since then. ``values``: field to its value."""
    clauses = [of_cluster(cluster), term("state", WAITING), *term_filters(values)]
    return all_of([*clauses, *time_range("@timestamp", since, None)])


def pods_query(query: Json, after: Sequence[int | str] | None, limit: int) -> Json:
    """The body of a search for a page of pods, the longest wait first, and one pod more."""
    body = {"query": query, "sort": _LONGEST_WAIT, "size": limit + 1, "_source": _FIELDS, "track_total_hits": True}
    return body | ({"search_after": list(after)} if after else {})


def workloads_query(query: Json, size: int) -> Json:
    """The body of a search for the first ``size`` workloads, those with the most pods first, with what is waiting."""
    examples = {"top_hits": {"size": MAX_EXAMPLES, "sort": _LONGEST_WAIT, "_source": _FIELDS}}
    each = {
        "first": _FIRST,
        "last": {"max": {"field": "@timestamp"}},
        "reasons": _REASONS,
        "examples": examples,
    }
    groups = {
        "field": "group",
        "size": size,
        "order": [{"_count": "desc"}, {"first": "asc"}, {"_key": "asc"}],
        # Reasons and examples are collected for the groups of the page alone, and not for thousands of others.
        "collect_mode": "breadth_first",
    }
    return {
        "query": query,
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            "groups": {"terms": groups, "aggs": each},
            "workloads": {"cardinality": {"field": "group", "precision_threshold": _EXACT}},
            "reasons": _REASONS,
        },
    }


def workload_order(bucket: Json) -> tuple[int, int, str]:
    """Ascending: the workload with the most pods first, then the one that waits longest."""
    return -bucket["doc_count"], int(bucket["first"]["value"]), bucket["key"]


def workloads_behind(answer: Json, last: tuple[int, int, str] | None) -> list[Json]:
    """The buckets of the answer to ``workloads_query`` behind the last workload of the page before."""
    buckets: list[Json] = answer.get("aggregations", {}).get("groups", {}).get("buckets", [])
    return [bucket for bucket in buckets if last is None or workload_order(bucket) > last]


def reason_counts(aggregation: Json) -> dict[str, int]:
    """Reason to number of pods, the most frequent first."""
    return {bucket["key"]: bucket["doc_count"] for bucket in aggregation.get("buckets", [])}


def pod_waiting(cluster: Cluster, hit: Json) -> PodWaiting:
    """A hit as an item. Raises ``KeyError`` and ``ValidationError`` for a document that is not ours."""
    source: Json = hit["_source"]
    namespace, name = source["namespace"], source["pod"]
    return PodWaiting(
        namespace=namespace,
        name=name,
        pod_uid=source.get("pod_uid") or "",
        scheduler=source["scheduler"],
        status=source["status"],
        reasons=source.get("reasons") or [],
        workload=source.get("workload") or "",
        pod_group=source.get("pod_group") or "",
        queue=source.get("queue") or "",
        priority_class=source.get("priority_class") or "",
        created_at=source.get("created_at"),
        first_judged_at=source["first_judged_at"],
        last_judged_at=source["@timestamp"],
        attempts=source.get("attempts"),
        attempt=cluster.attempt(source["attempt_id"]),
        schedulerlog=cluster.schedulerlog(namespace, name),
    )


def workload_waiting(bucket: Json, examples: Sequence[PodWaiting]) -> WorkloadWaiting:
    """A bucket of ``workloads_query`` as an item; ``examples`` are its pods that wait longest."""
    namespace, _, workload = bucket["key"].partition("/")
    return WorkloadWaiting(
        namespace=namespace,
        workload=workload,
        queue=next((pod.queue for pod in examples if pod.queue), ""),
        pods=bucket["doc_count"],
        reasons=reason_counts(bucket["reasons"]),
        first_judged_at=examples[0].first_judged_at,
        last_judged_at=bucket["last"]["value_as_string"],
        examples=list(examples),
    )

"""Queries about attempts as bodies of OpenSearch searches, and list items from their hits. Pure.

Lists are sorted by start and then by attempt id: unique, the same on every shard, and unchanged when an attempt is
written again in a later version.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from api.http.cluster import Cluster
from api.http.param_types import Milliseconds
from api.http.query_params import SearchQuery
from api.index.reading.pages import ListSource, PagePosition
from api.index.reading.query_dsl import (
    combine,
    match_cluster,
    match_term,
    match_terms,
    match_time_range,
    sort_by,
    sort_latest_first,
)
from engine.summaries.messages import summarize_bind, summarize_filter
from schemas.answers.attempts import AttemptFound, NodeRefusalsFound, WorkloadFound
from schemas.codec.records import Rejected, format_rfc3339
from schemas.documents.attempts import list_reasons, read_summary
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS
from schemas.json_types import Json

SORT: Final = [sort_latest_first("@timestamp"), sort_by("attempt_id")]
_EMPTY_NODE_COLUMNS: Final[Json] = {
    "nodes": [], "verdict": [], "score": [], "refused_by": [], "refusal": [], "score_terms": {},
}  # fmt: skip
NODE_COLUMNS: Final = [f"summary.{name}" for name in _EMPTY_NODE_COLUMNS]
"""Fields that grow with the number of nodes, up to megabytes; most items of a list need none of them."""
SUMMARY_WITHOUT_NODES: Final = {"includes": ["summary", "repeated"], "excludes": NODE_COLUMNS}
FULL_SUMMARY: Final = ["summary", "repeated"]
_MAX_WORKLOADS: Final = 100
_MAX_REASONS: Final = 200
WORKLOADS: Final[Json] = {
    "workloads": {
        "multi_terms": {"terms": [{"field": "namespace"}, {"field": "workload"}], "size": _MAX_WORKLOADS},
        "aggs": {
            "pods": {"cardinality": {"field": "pod_uid", "precision_threshold": 40_000}},
            "reasons": {"terms": {"field": "reasons", "size": _MAX_REASONS}},
            "last": {"max": {"field": "@timestamp"}},
        },
    }
}
"""Aggregation that counts the attempts of a search by workload: 500 pods of one job are one line."""
_MAX_NODE_REASONS: Final = 100
# Characters with a meaning in Lucene's regular expressions.
_SPECIAL: Final = re.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]')
HISTORY_FIELDS: Final = ("attempt_id", "episode", "status", "offered_nodes")
HISTORY_PAGE: Final = 2_000

MAX_SAME_ID: Final = 10


class PodName(NamedTuple):
    """Name by which callers request a pod. Two pods may have it, one after the other."""

    cluster: str
    namespace: str
    name: str


SearchPosition = PagePosition[tuple[Milliseconds, str]]
SEARCH_SOURCE: Final = ListSource(ATTEMPTS.alias, SORT, SUMMARY_WITHOUT_NODES)


def _match_pod(pod: PodName) -> Json:
    return combine([match_cluster(pod.cluster), match_term("namespace", pod.namespace), match_term("pod", pod.name)])


def build_latest_attempts_query(cluster: str, namespace: str, pods: Sequence[str]) -> Json:
    """Build the search for the complete latest attempt of each of ``pods``; ``fields`` of a hit has its pod."""
    return {
        "query": combine([match_cluster(cluster), match_term("namespace", namespace), {"terms": {"pod": list(pods)}}]),
        "sort": SORT,
        "collapse": {"field": "pod"},
        "size": len(pods),
        "_source": FULL_SUMMARY,
        "track_total_hits": False,
    }


def build_attempt_query(cluster: str, attempt_id: str) -> Json:
    """Build the search for one complete attempt by its id, or by the id of a report of it."""
    names = [match_term("attempt_id", attempt_id), match_term("report_ids", attempt_id)]
    by_id = {"bool": {"should": names, "minimum_should_match": 1}}
    return {
        "query": combine([match_cluster(cluster), by_id]),
        "sort": SORT,
        # The attempt with this id, and attempts with a report of this id: reports may have been published apart first.
        "size": MAX_SAME_ID,
        "_source": FULL_SUMMARY,
        "track_total_hits": False,
    }


def build_history_query(pod: PodName, after: Sequence[Any] | None) -> Json:
    """Build the search for ``HISTORY_PAGE`` attempts of a pod after the sort values ``after``, latest first.

    The hits have only ``HISTORY_FIELDS``, because the documents hold every node.
    """
    # OpenSearch reads doc values, also the id, without the document, whose unpacking takes three times as long.
    body = {
        "query": _match_pod(pod),
        "sort": SORT,
        "size": HISTORY_PAGE,
        "stored_fields": "_none_",
        "docvalue_fields": list(HISTORY_FIELDS),
        "track_total_hits": False,
    }
    return body | ({"search_after": list(after)} if after else {})


def build_device_records_query(cluster: str, attempt_id: str, nodes: Sequence[str], size: int) -> Json:
    """Build the search for the device records of an attempt that hold any of ``nodes``."""
    query = combine([match_cluster(cluster), match_term("attempt_id", attempt_id), {"terms": {"nodes": list(nodes)}}])
    # The total shows whether records were left out; by default OpenSearch stops counting at 10,000.
    return {"query": query, "size": size, "_source": ["record"], "track_total_hits": True}


def build_search_filters(cluster: str, query: SearchQuery, position: SearchPosition) -> list[Json]:
    """Build the clauses of a search for attempts: one for each parameter of the query."""
    values = {
        "namespace": query.namespace,
        "pod": query.pod,
        **_choose_fields(query.node, query.reason),
        "obstacle": query.obstacle,
        "status": query.status,
        "picked_devices": query.device,
        "scheduler": query.scheduler,
        "workload": query.workload,
        "queue": query.queue,
    }
    clauses = [
        match_cluster(cluster),
        *match_terms(values),
        *match_time_range("@timestamp", position.since, position.until),
    ]
    if query.q:
        # ``match`` takes the words as they are: a query string would give characters like ``*`` and ``"`` a meaning.
        clauses.append({"match": {"text": {"query": query.q, "operator": "and"}}})
    return clauses


def _choose_fields(node: str | None, reason: str | None) -> dict[str, str | None]:
    """Derive field and value. Node and reason together mean a refusal of that node for that reason."""
    if node and reason:
        return {"node_reasons": f"{node}|{reason}"}
    return {"nodes": node, "reasons": reason}


def build_refusal_counts(node: str | None, reason: str | None) -> Json:
    """Build the aggregation that counts refusals by node and reason, of one node or reason if one is given.

    An attempt is one document with all of its refusals as terms, so the search itself does not select refusals.
    """
    terms: Json = {"field": "node_reasons", "size": _MAX_NODE_REASONS}
    if node or reason:
        terms["include"] = f"{_escape(node)}\\|{_escape(reason)}"
    counts = {"pods": {"cardinality": {"field": "pod_uid", "precision_threshold": 40_000}}}
    return {"nodes": {"terms": terms, "aggs": counts | {"last": {"max": {"field": "@timestamp"}}}}}


def _escape(text: str | None) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text) if text else ".*"


def to_node_refusals(bucket: Json) -> NodeRefusalsFound:
    """Convert a bucket of ``build_refusal_counts`` into a line of the answer."""
    node, _, reason = bucket["key"].partition("|")
    return NodeRefusalsFound(
        node=node,
        reason=reason,
        attempts=bucket["doc_count"],
        pods=bucket["pods"]["value"],
        last_started_at=bucket["last"]["value_as_string"],
    )


def to_workload(bucket: Json) -> WorkloadFound:
    """Convert a bucket of ``WORKLOADS`` into a line of the answer."""
    namespace, workload = bucket["key"]
    return WorkloadFound(
        namespace=namespace,
        workload=workload,
        pods=bucket["pods"]["value"],
        attempts=bucket["doc_count"],
        reasons={reason["key"]: reason["doc_count"] for reason in bucket["reasons"]["buckets"]},
        last_started_at=bucket["last"]["value_as_string"],
    )


def decode_without_nodes(source: Json) -> AttemptSummarized | Rejected:
    """Decode the summary of a document read as ``SUMMARY_WITHOUT_NODES``; its node columns are empty."""
    summary = source.get("summary")
    return read_summary({"summary": summary | _EMPTY_NODE_COLUMNS} if isinstance(summary, dict) else source)


def does_filter_line_need_nodes(summary: AttemptSummarized) -> bool:
    """Tell whether the one-line summary of the filter names nodes, and so needs the node columns."""
    return summary.ended_at is None or (summary.chosen is not None and not summary.error)


def does_item_need_nodes(summary: AttemptSummarized) -> bool:
    """Tell whether the item of an attempt needs the node columns: only without a bind it shows the filter's line."""
    return summary.bind is None and does_filter_line_need_nodes(summary)


def to_search_item(cluster: Cluster, summary: AttemptSummarized) -> AttemptFound:
    """Convert an attempt into an item of a list, with the one-line summary of its last phase."""
    namespace, name = summary.pod.namespace, summary.pod.name
    return AttemptFound(
        attempt_id=summary.attempt_id,
        namespace=namespace,
        name=name,
        scheduler=summary.scheduler,
        started_at=format_rfc3339(summary.started_at),
        ended_at=format_rfc3339(summary.ended_at) if summary.ended_at else None,
        status=summary.status,
        complete=summary.complete,
        chosen=summary.chosen,
        offered_nodes=summary.offered_nodes,
        fit_nodes=summary.fit_nodes,
        obstacle=summary.wait.code if summary.wait else "",
        reasons=list_reasons(summary),
        summary=summarize_bind(summary) or summarize_filter(summary),
        workload=summary.description.workload if summary.description else "",
        attempt=cluster.link_attempt(summary.attempt_id),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
    )

"""Queries about attempts as bodies of OpenSearch searches, and list items made from their hits. Pure.

Lists are sorted by start and then by attempt id: unique, the same on every shard, and unchanged when an attempt is
written again in a later version.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from api.http.cluster import Cluster
from api.http.param_types import Milliseconds
from api.http.query_params import SearchQuery
from api.index.reading.page_query import ListSource, PagePosition
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term, term_filters, time_range
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
"""The fields that grow with the number of nodes, up to megabytes; most items of a list need none of them."""
SUMMARY_WITHOUT_NODES: Final = {"includes": ["summary", "repeated"], "excludes": NODE_COLUMNS}
WHOLE_SUMMARY: Final = ["summary", "repeated"]
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
"""Counts the attempts of a search by workload: 500 pods of one job are one line."""
_MAX_NODE_REASONS: Final = 100
# Characters that mean something in Lucene's regular expressions.
_SPECIAL: Final = re.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]')
HISTORY_FIELDS: Final = ("attempt_id", "episode", "status", "offered_nodes")
HISTORY_PAGE: Final = 2_000

MAX_SAME_ID: Final = 10


class PodName(NamedTuple):
    """What a pod is asked for by. Two pods may have it, one after the other."""

    cluster: str
    namespace: str
    name: str


SearchPosition = PagePosition[tuple[Milliseconds, str]]
SEARCH_SOURCE: Final = ListSource(ATTEMPTS.alias, SORT, SUMMARY_WITHOUT_NODES)


def _of_pod(pod: PodName) -> Json:
    return all_of([of_cluster(pod.cluster), term("namespace", pod.namespace), term("pod", pod.name)])


def latest_attempts_query(cluster: str, namespace: str, pods: Sequence[str]) -> Json:
    """The body of a search for the latest attempt of each of ``pods``, as a whole; ``fields`` of a hit has its pod."""
    return {
        "query": all_of([of_cluster(cluster), term("namespace", namespace), {"terms": {"pod": list(pods)}}]),
        "sort": SORT,
        "collapse": {"field": "pod"},
        "size": len(pods),
        "_source": WHOLE_SUMMARY,
        "track_total_hits": False,
    }


def attempt_query(cluster: str, attempt_id: str) -> Json:
    """The body of a search for one attempt, as a whole: by its own id, or by that of any report of it."""
    names = [term("attempt_id", attempt_id), term("report_ids", attempt_id)]
    by_id = {"bool": {"should": names, "minimum_should_match": 1}}
    return {
        "query": all_of([of_cluster(cluster), by_id]),
        "sort": SORT,
        # Its own, and one that has a report of this id: reports may have been published apart at first.
        "size": MAX_SAME_ID,
        "_source": WHOLE_SUMMARY,
        "track_total_hits": False,
    }


def pod_attempts_query(pod: PodName, after: Sequence[Any] | None) -> Json:
    """The body of a search for ``HISTORY_PAGE`` attempts of a pod behind the sort values ``after``, latest first.

    The hits have only ``HISTORY_FIELDS``: the documents hold every node.
    """
    # Doc values are read without the document, also its id: unpacking a hundred of them takes three times as long.
    body = {
        "query": _of_pod(pod),
        "sort": SORT,
        "size": HISTORY_PAGE,
        "stored_fields": "_none_",
        "docvalue_fields": list(HISTORY_FIELDS),
        "track_total_hits": False,
    }
    return body | ({"search_after": list(after)} if after else {})


def device_records_query(cluster: str, attempt_id: str, nodes: Sequence[str], size: int) -> Json:
    """The body of a search for the device records of an attempt that hold any of ``nodes``."""
    query = all_of([of_cluster(cluster), term("attempt_id", attempt_id), {"terms": {"nodes": list(nodes)}}])
    # The total shows whether records were left out; OpenSearch stops counting at 10,000 unless it is asked to.
    return {"query": query, "size": size, "_source": ["record"], "track_total_hits": True}


def search_filters(cluster: str, query: SearchQuery, position: SearchPosition) -> list[Json]:
    """The clauses of a search for attempts: one for each parameter that was given."""
    values = {
        "namespace": query.namespace,
        "pod": query.pod,
        **_node_and_reason(query.node, query.reason),
        "status": query.status,
        "picked_devices": query.device,
        "scheduler": query.scheduler,
        "workload": query.workload,
        "queue": query.queue,
    }
    clauses = [of_cluster(cluster), *term_filters(values), *time_range("@timestamp", position.since, position.until)]
    if query.q:
        # ``match`` takes the words as they are: a query string would give characters like ``*`` and ``"`` a meaning.
        clauses.append({"match": {"text": {"query": query.q, "operator": "and"}}})
    return clauses


def _node_and_reason(node: str | None, reason: str | None) -> dict[str, str | None]:
    """Field to value. Both together are a refusal of that node for that reason, and not one of each anywhere."""
    if node and reason:
        return {"node_reasons": f"{node}|{reason}"}
    return {"nodes": node, "reasons": reason}


def node_reason_counts(node: str | None, reason: str | None) -> Json:
    """The aggregation that counts the refusals of a search by node and reason, those of one of them where it is given.

    An attempt is one document with all of its refusals as terms, so nothing but this says which are wanted.
    """
    terms: Json = {"field": "node_reasons", "size": _MAX_NODE_REASONS}
    if node or reason:
        terms["include"] = f"{_literal(node)}\\|{_literal(reason)}"
    counts = {"pods": {"cardinality": {"field": "pod_uid", "precision_threshold": 40_000}}}
    return {"nodes": {"terms": terms, "aggs": counts | {"last": {"max": {"field": "@timestamp"}}}}}


def _literal(text: str | None) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text) if text else ".*"


def node_refusals_found(bucket: Json) -> NodeRefusalsFound:
    """One line of what ``node_reason_counts`` counts."""
    node, _, reason = bucket["key"].partition("|")
    return NodeRefusalsFound(
        node=node,
        reason=reason,
        attempts=bucket["doc_count"],
        pods=bucket["pods"]["value"],
        last_started_at=bucket["last"]["value_as_string"],
    )


def workload_found(bucket: Json) -> WorkloadFound:
    """One line of what ``WORKLOADS`` counts."""
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
    """The summary of a document that was read as ``SUMMARY_WITHOUT_NODES``; its node columns are empty."""
    summary = source.get("summary")
    return read_summary({"summary": summary | _EMPTY_NODE_COLUMNS} if isinstance(summary, dict) else source)


def filter_summary_needs_nodes(summary: AttemptSummarized) -> bool:
    """Does the one-line summary of the filter name nodes, so that it can't be written without the node columns?"""
    return summary.ended_at is None or (summary.chosen is not None and not summary.error)


def item_needs_nodes(summary: AttemptSummarized) -> bool:
    """Does ``search_item`` need the node columns? It shows the filter's line only where there was no bind."""
    return summary.bind is None and filter_summary_needs_nodes(summary)


def search_item(cluster: Cluster, summary: AttemptSummarized) -> AttemptFound:
    """One attempt in a list; its one-line summary is that of the last phase that was reached."""
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
        reasons=list_reasons(summary),
        summary=summarize_bind(summary) or summarize_filter(summary),
        workload=summary.description.workload if summary.description else "",
        attempt=cluster.link_attempt(summary.attempt_id),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
    )

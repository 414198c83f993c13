"""Questions about attempts as request bodies for OpenSearch, and what its hits say. Pure: nothing here is sent.

Sorting is by start and then by attempt id: unique, the same on every shard, and never changed by a later telling.
"""

from collections.abc import Sequence
from typing import Any, Final

from api.http.query_params import SearchQuery
from api.index.query_dsl import Kind, PagePosition, all_of, between, by, latest_by, term, terms_of
from schemas.answers.attempts import AttemptFound
from schemas.codec.records import Rejected, rfc3339
from schemas.documents.attempts import reason_codes, summary_of
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS
from summaries.messages import bind_summary, filter_summary

Json = dict[str, Any]

SORT: Final = [latest_by("@timestamp"), by("attempt_id")]
_NO_NODES: Final[Json] = {name: [] for name in ("nodes", "verdict", "score", "refused_by", "refusal")}
NODE_COLUMNS: Final = [f"summary.{name}" for name in _NO_NODES]
"""What makes a document large; a line in a list of attempts does without."""
SUMMARY_WITHOUT_NODES: Final = {"includes": ["summary", "repeated"], "excludes": NODE_COLUMNS}
WHOLE_SUMMARY: Final = ["summary", "repeated"]
HISTORY_FIELDS: Final = ("attempt_id", "verdict_digest", "status")
HISTORY_PAGE: Final = 2_000

SearchPosition = PagePosition[tuple[int, str]]
SEARCHED: Final = Kind(ATTEMPTS.alias, SORT, SUMMARY_WITHOUT_NODES)


def of_pod(namespace: str, name: str) -> Json:
    return all_of([term("namespace", namespace), term("pod", name)])


def latest_of_pod(namespace: str, name: str) -> Json:
    return {
        "query": of_pod(namespace, name),
        "sort": SORT,
        "size": 1,
        "_source": WHOLE_SUMMARY,
        "track_total_hits": False,
    }


def attempts_of_pod(namespace: str, name: str, after: Sequence[Any] | None) -> Json:
    """One page of all attempts, latest first, without their documents: those hold every node."""
    body = {
        "query": of_pod(namespace, name),
        "sort": SORT,
        "size": HISTORY_PAGE,
        "_source": False,
        "docvalue_fields": list(HISTORY_FIELDS),
        "track_total_hits": False,
    }
    return body | ({"search_after": list(after)} if after else {})


def devices_of_nodes(attempt_id: str, nodes: Sequence[str], size: int) -> Json:
    query = all_of([term("attempt_id", attempt_id), {"terms": {"nodes": list(nodes)}}])
    return {"query": query, "size": size, "_source": ["record", "inventory"], "track_total_hits": True}


def searched(query: SearchQuery, within: SearchPosition) -> list[Json]:
    """Every condition that an attempt has to meet."""
    fields = {
        "namespace": query.namespace,
        "pod": query.pod,
        "nodes": query.node,
        "reasons": query.reason,
        "status": query.status,
        "picked_devices": query.device,
    }
    clauses = [*terms_of(fields), *between("@timestamp", within)]
    if query.q:
        clauses.append({"match": {"text": {"query": query.q, "operator": "and"}}})
    return clauses


def without_nodes(source: Json) -> AttemptSummarized | Rejected:
    """The summary of a document that was asked for without ``NODE_COLUMNS``."""
    said = source.get("summary")
    return summary_of({"summary": said | _NO_NODES} if isinstance(said, dict) else source)


def filter_needs_nodes(summary: AttemptSummarized) -> bool:
    """Does the filter's line name nodes, so that it is not to be had without the node columns?"""
    return summary.ended_at is None or (summary.chosen is not None and not summary.error)


def line_needs_nodes(summary: AttemptSummarized) -> bool:
    return summary.bind is None and filter_needs_nodes(summary)


def found(summary: AttemptSummarized) -> AttemptFound:
    """One attempt in a list; its line is the last thing that was said about it."""
    namespace, name = summary.pod.namespace, summary.pod.name
    return AttemptFound(
        attempt_id=summary.attempt_id,
        namespace=namespace,
        name=name,
        scheduler=summary.scheduler,
        started_at=rfc3339(summary.started_at),
        ended_at=rfc3339(summary.ended_at) if summary.ended_at else None,
        status=summary.status,
        complete=summary.complete,
        chosen=summary.chosen,
        offered_nodes=summary.offered_nodes,
        fit_nodes=summary.fit_nodes,
        reasons=reason_codes(summary.refusals),
        summary=bind_summary(summary) or filter_summary(summary),
        schedulerlog=schedulerlog_path(namespace, name),
    )


def schedulerlog_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog"

"""Questions to OpenSearch as request bodies, and what its hits say. Pure: nothing here is sent.

Sorting is by start and then by attempt id: unique, the same on every shard, and never changed by a later telling.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from api.queries import SearchQuery, moment
from api.tokens import Position
from schemas.answers import Found
from schemas.documents import reason_codes, summary_of
from schemas.events import AttemptSummarized
from schemas.records import Rejected, rfc3339
from summaries.messages import bind_summary, filter_summary

Json = dict[str, Any]

SORT: Final = [
    {"@timestamp": {"order": "desc", "unmapped_type": "date"}},
    {"attempt_id": {"order": "asc", "unmapped_type": "keyword"}},
]
_NO_NODES: Final[Json] = {name: [] for name in ("nodes", "verdict", "score", "refused_by", "refusal")}
NODE_COLUMNS: Final = [f"summary.{name}" for name in _NO_NODES]
"""What makes a document large; a line in a list of attempts does without."""
SUMMARY_WITHOUT_NODES: Final = {"includes": ["summary", "repeated"], "excludes": NODE_COLUMNS}
WHOLE_SUMMARY: Final = ["summary", "repeated"]
HISTORY_FIELDS: Final = ("attempt_id", "verdict_digest", "status")
HISTORY_PAGE: Final = 2_000
KEEP_ALIVE: Final = "5m"
"""How long a point in time is kept after each page."""


class SearchPosition(Position):
    """``pit`` holds the index still from the second page on; until then it is None.

    Most searches end with their first page, and a node keeps no more than 300 points in time open. What is written
    before the second page is asked for stands before this place, or is as old as what stands behind it: no attempt is
    shown twice or left out. ``since`` and ``until`` are what durations meant at the first page.
    """

    pit: str | None
    sort: tuple[int, str] | None
    since: str | None
    until: str | None


def first_page(query: SearchQuery, now: datetime) -> SearchPosition:
    since, until = (rfc3339(moment(said, now)) if said else None for said in (query.since, query.until))
    return SearchPosition(pit=None, sort=None, since=since, until=until)


def of_pod(namespace: str, name: str) -> Json:
    return _all_of([_term("namespace", namespace), _term("pod", name)])


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
    query = _all_of([_term("attempt_id", attempt_id), {"terms": {"nodes": list(nodes)}}])
    return {"query": query, "size": size, "_source": ["record"], "track_total_hits": True}


def search(query: SearchQuery, position: SearchPosition) -> Json:
    """One more than was asked for, so that its presence tells whether there is a next page."""
    body = {
        "query": _searched(query, position),
        "sort": SORT,
        "size": query.limit + 1,
        "_source": SUMMARY_WITHOUT_NODES,
        "track_total_hits": True,
    }
    if position.pit:
        body["pit"] = {"id": position.pit, "keep_alive": KEEP_ALIVE}
    if position.sort:
        body["search_after"] = list(position.sort)
    return body


def _searched(query: SearchQuery, within: SearchPosition) -> Json:
    fields = {
        "namespace": query.namespace,
        "pod": query.pod,
        "nodes": query.node,
        "reasons": query.reason,
        "status": query.status,
        "picked_devices": query.device,
    }
    clauses = [_term(field, value) for field, value in fields.items() if value is not None]
    clauses += [{"range": {"@timestamp": {word: when}}} for word, when in _bounds(within)]
    if query.q:
        clauses.append({"match": {"text": {"query": query.q, "operator": "and"}}})
    return _all_of(clauses)


def _bounds(within: SearchPosition) -> list[tuple[str, str]]:
    return [(word, when) for word, when in (("gte", within.since), ("lt", within.until)) if when]


def _term(field: str, value: str) -> Json:
    return {"term": {field: value}}


def _all_of(clauses: list[Json]) -> Json:
    return {"bool": {"filter": clauses}}


def question(query: SearchQuery) -> Json:
    """What has to stay the same from page to page."""
    return {"at": "schedulerlogs"} | query.model_dump(exclude={"limit", "continue_"})


def without_nodes(source: Json) -> AttemptSummarized | Rejected:
    """The summary of a document that was asked for without ``NODE_COLUMNS``."""
    said = source.get("summary")
    return summary_of({"summary": said | _NO_NODES} if isinstance(said, dict) else source)


def filter_needs_nodes(summary: AttemptSummarized) -> bool:
    """Does the filter's line name nodes, so that it is not to be had without the node columns?"""
    return summary.ended is None or (summary.chosen is not None and not summary.error)


def line_needs_nodes(summary: AttemptSummarized) -> bool:
    return summary.bind is None and filter_needs_nodes(summary)


def found(summary: AttemptSummarized) -> Found:
    """One attempt in a list; its line is the last thing that was said about it."""
    namespace, name = summary.pod.namespace, summary.pod.name
    return Found(
        attempt_id=summary.attempt_id,
        namespace=namespace,
        name=name,
        scheduler=summary.scheduler,
        started=rfc3339(summary.started),
        ended=rfc3339(summary.ended) if summary.ended else None,
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

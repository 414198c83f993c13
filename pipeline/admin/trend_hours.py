"""Counts of hours in place of counts of minutes, a week after Kafka took the decisions. A part of `retention`.

Rows of minutes are summed over partitions, windows and minutes into a row for each hour and combination, with the day
of their ``recorded_at``. Rows of hours have no ``partition``. A filter of the alias shows rows of minutes from one
moment of ``recorded_at`` on and rows of hours before it, so no reader sees both or neither: first the hours are
written, then the moment moves, in one step for all indices, and then the minutes are deleted. What was not deleted, or
is written again, is not shown. Minutes of long ago that are counted today are of today by ``recorded_at``: they add up
with the hours that are there.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from opensearchpy import AsyncOpenSearch

from pipeline.admin.document_deletion import delete_documents
from pipeline.sinks.bulk import Document, encode_body, encode_source
from runtime.errors import UnreachableError
from schemas.codec.records import format_rfc3339
from schemas.documents.trends import COUNTED, build_hour_document
from schemas.indices import MINUTES_SHOWN, OF_MINUTES, TRENDS

_AFTER: Final = MINUTES_SHOWN + timedelta(days=1)
"""Age of rows that are summed up. A day more than minutes are shown, because a pod's scheduler may be a day ahead of
Kafka; and a day more than topics keep records, so that nobody counts these rows any more."""
_PAGE: Final = 1_000
_SOURCES: Final[list[dict[str, Any]]] = [
    {"cluster": {"terms": {"field": "cluster"}}},
    {"hour": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1h"}}},
    {"day": {"date_histogram": {"field": "recorded_at", "fixed_interval": "1d"}}},
    # A value too long to be searched for is missing; its counts are part of every total.
    *(
        {name: {"terms": {"field": name, "missing_bucket": True}}}
        for name in ("namespace", "result", "dimension", "value")
    ),
]


@dataclass(frozen=True, slots=True)
class SummedHours:
    """Rows of hours, written in place of rows of minutes."""

    index: str
    documents: int
    is_dry_run: bool

    def __str__(self) -> str:
        done = "would be summed up" if self.is_dry_run else "summed up"
        return f"index {self.index}: minutes of a week ago {done} into {self.documents:,} rows of hours"


async def sum_up_hours(store: AsyncOpenSearch, names: Sequence[str], now: datetime, *, dry_run: bool) -> SummedHours:
    """Sum up what is old enough in the indices ``names``. Raises ``TransportError``, ``UnreachableError``."""
    cut = await _choose_cut(store, now)
    count = 0
    async for hours in _read_hours(store, cut):
        count += len(hours)
        if not dry_run:
            await _write(store, hours)
    summed = SummedHours(TRENDS.alias, count, dry_run)
    if dry_run:
        return summed
    if count:
        add = [{"add": {"index": name, "alias": TRENDS.alias, "filter": build_filter(cut)}} for name in names]
        await store.transport.perform_request("POST", "/_aliases", body={"actions": add})
    hidden = {"bool": {"filter": [OF_MINUTES, _match_before(cut)]}}
    # Through the names, because the alias no longer shows them.
    await delete_documents(store, f"{TRENDS.alias}-*", hidden)
    return summed


def build_filter(cut: datetime) -> dict[str, Any]:
    """Build the filter of the alias that shows minutes recorded from ``cut`` on, and hours recorded before."""
    not_before = {"range": {"recorded_at": {"gte": format_rfc3339(cut)}}}
    minutes = {"bool": {"filter": [OF_MINUTES, not_before]}}
    hours = {"bool": {"filter": [_match_before(cut)], "must_not": [OF_MINUTES]}}
    return {"bool": {"should": [minutes, hours], "minimum_should_match": 1}}


def _match_before(cut: datetime) -> dict[str, Any]:
    return {"range": {"recorded_at": {"lt": format_rfc3339(cut)}}}


async def _choose_cut(store: AsyncOpenSearch, now: datetime) -> datetime:
    """Choose the beginning of the first day whose minutes are kept, by our clock and by the latest row: a clock that is
    ahead must not sum up what is still counted."""
    body = {"size": 0, "aggs": {"latest": {"max": {"field": "recorded_at"}}}}
    answer = await _search(store, body)
    latest = answer.get("aggregations", {}).get("latest", {}).get("value")
    moment = min(now, datetime.fromtimestamp(latest / 1000, now.tzinfo)) if latest is not None else now
    return (moment - _AFTER).replace(hour=0, minute=0, second=0, microsecond=0)


async def _read_hours(store: AsyncOpenSearch, cut: datetime) -> AsyncIterator[list[Document]]:
    """Read the sums of shown minutes that were recorded before ``cut``, page by page."""
    sums = {name: {"sum": {"field": name}} for name in COUNTED}
    composite: dict[str, Any] = {"size": _PAGE, "sources": _SOURCES}
    query = {"bool": {"filter": [OF_MINUTES, _match_before(cut)]}}
    while True:
        answer = await _search(
            store, {"size": 0, "query": query, "aggs": {"hours": {"composite": composite, "aggs": sums}}}
        )
        page = answer.get("aggregations", {}).get("hours", {})
        if buckets := page.get("buckets"):
            yield [_to_document(bucket) for bucket in buckets]
        if not (after := page.get("after_key")):
            return
        composite["after"] = after


async def _search(store: AsyncOpenSearch, body: dict[str, Any]) -> dict[str, Any]:
    path, params = f"/{TRENDS.alias}/_search", {"ignore_unavailable": "true", "request_cache": "false"}
    answer: dict[str, Any] = await store.transport.perform_request("POST", path, params=params, body=body)
    return answer


def _to_document(bucket: dict[str, Any]) -> Document:
    name, hour, fields = build_hour_document(bucket["key"], [round(bucket[name]["value"]) for name in COUNTED])
    # Never replaced: a run beside this one may already be deleting the minutes that are summed here.
    return Document(TRENDS.name(hour), name, encode_source(fields))


async def _write(store: AsyncOpenSearch, hours: Sequence[Document]) -> None:
    # Searchable before the alias shows them.
    answer = await store.bulk(body=encode_body(hours), params={"refresh": "true"})
    results = [item["create"] for item in answer["items"]]
    error = next((result["error"] for result in results if result["status"] >= 400 and result["status"] != 409), None)
    if error:
        raise UnreachableError(f"OpenSearch refuses rows of hours: {error}")

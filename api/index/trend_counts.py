"""Counts over time, added up from the rows of minutes. Pure."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from api.http.trends_query import TrendRange, TrendsQuery
from api.index.reading.query_dsl import all_of, of_cluster, term, term_filters, time_range
from engine.summaries.change_points import find_change_points
from schemas.answers.trends import TrendChange, Trends, TrendSeries
from schemas.codec.records import format_rfc3339
from schemas.indices import TRENDS
from schemas.json_types import Json

_OF_ALL: Final = {"namespace": "namespace", "result": "result"}
"""Dimensions that every row has: their counts are those of the rows about all attempts."""


def trends_query(cluster: str, query: TrendsQuery, span: TrendRange) -> Json:
    """The body of a search for the largest series and for all together, each with its buckets."""
    return _body(cluster, query, span) | {
        "aggs": {
            "series": {
                "terms": {"field": _field(query), "size": query.limit, "order": [{"total": "desc"}, {"_key": "asc"}]},
                "aggs": {"total": _sum(query)} | _over_time(query, span),
            },
            **_over_time(query, span),
        }
    }


def totals_query(cluster: str, query: TrendsQuery, span: TrendRange, keys: Sequence[str]) -> Json:
    """The body of a search for the totals of these series, and of all, in a range."""
    terms: Json = {"field": _field(query), "size": max(1, len(keys)), "include": list(keys)}
    # `include` of none would be every one.
    series = {"series": {"terms": terms, "aggs": {"total": _sum(query)}}} if keys else {}
    return _body(cluster, query, span) | {"aggs": {"total": _sum(query)} | series}


def _body(cluster: str, query: TrendsQuery, span: TrendRange) -> Json:
    dimension = "all" if query.by in _OF_ALL else query.by
    filters = [
        of_cluster(cluster),
        term("dimension", dimension),
        *term_filters({"namespace": query.namespace, "result": query.result}),
        *([term(_field(query), query.key)] if query.key else []),
        *time_range("@timestamp", format_rfc3339(span.since), format_rfc3339(span.until)),
    ]
    return {"size": 0, "track_total_hits": False, "query": all_of(filters)}


def _field(query: TrendsQuery) -> str:
    return _OF_ALL.get(query.by, "value")


def _sum(query: TrendsQuery) -> Json:
    return {"sum": {"field": query.count}}


def _over_time(query: TrendsQuery, span: TrendRange) -> Json:
    histogram = {"field": "@timestamp", "fixed_interval": f"{int(span.interval.total_seconds())}s", "min_doc_count": 1}
    return {"times": {"date_histogram": histogram, "aggs": {"total": _sum(query)}}}


def trends_of(query: TrendsQuery, span: TrendRange, answer: Json, before: Json | None) -> Trends:
    """``before``: the answer to ``totals_query`` for the range before; None where counts do not go back so far."""
    found = answer.get("aggregations", {})
    starts = _starts(span)
    buckets = found.get("series", {}).get("buckets", [])
    values = {str(bucket["key"]): _values(bucket, starts) for bucket in buckets}
    totals_before = _totals(before) if before is not None else None
    items = [
        _series(key, series, starts, None if totals_before is None else totals_before.get(key, 0))
        for key, series in values.items()
    ]
    together = _values(found, starts)
    left = [all_ - sum(column) for all_, column in zip(together, _columns(list(values.values()), starts), strict=True)]
    left_before = (
        None
        if totals_before is None
        else totals_before.get("", 0) - sum(count for key, count in totals_before.items() if key)
    )
    return Trends(
        by=query.by,
        count=query.count,
        since=format_rfc3339(span.since),
        until=format_rfc3339(span.until),
        interval_seconds=int(span.interval.total_seconds()),
        times=list(starts.values()),
        items=items,
        other=_series("", left, starts, left_before) if any(left) or left_before else None,
    )


def _starts(span: TrendRange) -> dict[int, str]:
    """When each bucket begins: in milliseconds since 1970, and as text."""
    count = -(-(span.until - span.since) // span.interval)
    times = (span.since + place * span.interval for place in range(count))
    return {round(time.timestamp() * 1000): format_rfc3339(time) for time in times}


def _values(bucket: Json, starts: Mapping[int, str]) -> list[int]:
    found = {time["key"]: round(time["total"]["value"]) for time in bucket.get("times", {}).get("buckets", [])}
    return [found.get(start, 0) for start in starts]


def _columns(series: Sequence[Sequence[int]], starts: Mapping[int, str]) -> list[tuple[int, ...]]:
    return list(zip(*series, strict=True)) if series else [()] * len(starts)


def _totals(answer: Json) -> dict[str, int]:
    """By key; "" for all together."""
    found = answer.get("aggregations", {})
    totals = {
        str(bucket["key"]): round(bucket["total"]["value"]) for bucket in found.get("series", {}).get("buckets", [])
    }
    return totals | {"": round(found.get("total", {}).get("value") or 0)}


def _series(key: str, values: list[int], starts: Mapping[int, str], before: int | None) -> TrendSeries:
    times = list(starts.values())
    return TrendSeries(
        key=key,
        total=sum(values),
        total_before=before,
        values=values,
        changes=[
            TrendChange(at=times[change.bucket], before=round(change.before, 3), after=round(change.after, 3))
            for change in find_change_points(values)
        ],
    )


KEPT: Final[timedelta] = TRENDS.retention
"""How far counts go back."""

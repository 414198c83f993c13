"""Counts over time, summed from the rows of minutes, and their reader."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from api.http.trends_query import TrendRange, TrendsQuery
from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import combine, match_cluster, match_term, match_terms, match_time_range
from api.index.report_queries import name_layer_sum, sum_layer
from engine.summaries.change_points import find_change_points
from schemas.answers.trends import TrendChange, Trends, TrendSeries
from schemas.codec.records import format_rfc3339
from schemas.indices import LAYERS, OCCUPANCY, TRENDS
from schemas.json_types import Json

_OF_ALL: Final = {"namespace": "namespace", "result": "result"}
"""Dimensions of every row: their counts come from the rows about all attempts."""


_UNPLACED: Final = {
    "bool": {"filter": [match_term("dimension", "all")], "must_not": [match_term("result", "succeeded")]}
}
"""Rows about all attempts that placed no pod: each should be under an obstacle too."""


def build_trends_query(cluster: str, query: TrendsQuery, span: TrendRange) -> Json:
    """Build the search for the largest series and for their total, each with its buckets."""
    over_time = _aggregate_over_time(query, span)
    terms = {"field": _choose_field(query), "size": query.limit, "order": [{"total": "desc"}, {"_key": "asc"}]}
    series = {"terms": terms, "aggs": {"total": _sum(query)} | over_time}
    return _build_body(cluster, query, span, {"series": series, **over_time}, over_time)


def build_totals_query(cluster: str, query: TrendsQuery, span: TrendRange, keys: Sequence[str]) -> Json:
    """Build the search for the totals of these series, and of all, in a range."""
    terms: Json = {"field": _choose_field(query), "size": max(1, len(keys)), "include": list(keys)}
    # An empty `include` would include every series.
    series = {"series": {"terms": terms, "aggs": {"total": _sum(query)}}} if keys else {}
    total = {"total": _sum(query)}
    return _build_body(cluster, query, span, total | series, total)


def _build_body(cluster: str, query: TrendsQuery, span: TrendRange, counted: Json, unplaced: Json) -> Json:
    """Build a search with ``counted`` of the query's rows and, by obstacle, ``unplaced`` of those it should add up to.

    Both are in one search: rows that change between two would make the difference wrong.
    """
    of_dimension = match_term("dimension", "all" if query.by in _OF_ALL else query.by)
    if query.by == "obstacle" and not query.key:
        rows = {"bool": {"should": [of_dimension, _UNPLACED], "minimum_should_match": 1}}
        aggregations = {
            "counted": {"filter": of_dimension, "aggs": counted},
            "unplaced": {"filter": _UNPLACED, "aggs": unplaced},
        }
    else:
        rows, aggregations = of_dimension, counted
    filters = [
        match_cluster(cluster),
        rows,
        *match_terms({"namespace": query.namespace, "result": query.result}),
        *([match_term(_choose_field(query), query.key)] if query.key else []),
        *match_time_range("@timestamp", format_rfc3339(span.since), format_rfc3339(span.until)),
    ]
    return {"size": 0, "track_total_hits": False, "query": combine(filters), "aggs": aggregations}


def _choose_field(query: TrendsQuery) -> str:
    return _OF_ALL.get(query.by, "value")


def _sum(query: TrendsQuery) -> Json:
    return {"sum": {"field": query.count}}


def _aggregate_over_time(query: TrendsQuery, span: TrendRange) -> Json:
    return {"times": {"date_histogram": _build_histogram(span), "aggs": {"total": _sum(query)}}}


def _build_histogram(span: TrendRange) -> Json:
    return {"field": "@timestamp", "fixed_interval": f"{int(span.interval.total_seconds())}s", "min_doc_count": 1}


def parse_trends(query: TrendsQuery, span: TrendRange, answer: Json, before: Json | None) -> Trends:
    """Parse the answer. ``before``: answer to ``build_totals_query`` for the range before; None if it has no counts."""
    aggregations = _get_counted(answer)
    starts = _list_starts(span)
    buckets = aggregations.get("series", {}).get("buckets", [])
    values = {str(bucket["key"]): _parse_values(bucket, starts) for bucket in buckets}
    totals_before = _parse_totals(before) if before is not None else None
    items = [
        _to_series(key, series, starts, None if totals_before is None else totals_before.get(key, 0))
        for key, series in values.items()
    ]
    together = _parse_values(aggregations, starts)
    left = [
        all_ - sum(column) for all_, column in zip(together, _list_columns(list(values.values()), starts), strict=True)
    ]
    left_before = (
        None
        if totals_before is None
        else totals_before.get("", 0) - sum(count for key, count in totals_before.items() if key)
    )
    unknown = [0] * len(starts)
    unknown_before = None
    if unplaced := answer.get("aggregations", {}).get("unplaced"):
        # A refresh between the rows of one minute may show those under an obstacle first.
        unknown = [
            max(0, all_ - counted) for all_, counted in zip(_parse_values(unplaced, starts), together, strict=True)
        ]
        if before is not None and totals_before is not None:
            unknown_before = max(0, _parse_total(before["aggregations"]["unplaced"]) - totals_before[""])
    return Trends(
        by=query.by,
        count=query.count,
        since=format_rfc3339(span.since),
        until=format_rfc3339(span.until),
        interval_seconds=int(span.interval.total_seconds()),
        times=list(starts.values()),
        items=items,
        other=_to_series("", left, starts, left_before) if any(left) or left_before else None,
        unknown=_to_series("", unknown, starts, unknown_before) if any(unknown) or unknown_before else None,
    )


def _get_counted(answer: Json) -> Json:
    aggregations: Json = answer.get("aggregations", {})
    counted: Json = aggregations.get("counted", aggregations)
    return counted


def _list_starts(span: TrendRange) -> dict[int, str]:
    """List the beginnings of the buckets: milliseconds since 1970 to text."""
    count = -(-(span.until - span.since) // span.interval)
    times = (span.since + position * span.interval for position in range(count))
    return {round(time.timestamp() * 1000): format_rfc3339(time) for time in times}


def _parse_values(bucket: Json, starts: Mapping[int, str]) -> list[int]:
    counts = {time["key"]: round(time["total"]["value"]) for time in bucket.get("times", {}).get("buckets", [])}
    return [counts.get(start, 0) for start in starts]


def _list_columns(series: Sequence[Sequence[int]], starts: Mapping[int, str]) -> list[tuple[int, ...]]:
    return list(zip(*series, strict=True)) if series else [()] * len(starts)


def _parse_totals(answer: Json) -> dict[str, int]:
    """Parse the totals by key; "" has the total of all."""
    aggregations = _get_counted(answer)
    totals = {
        str(bucket["key"]): round(bucket["total"]["value"])
        for bucket in aggregations.get("series", {}).get("buckets", [])
    }
    return totals | {"": _parse_total(aggregations)}


def _parse_total(aggregations: Json) -> int:
    return round(aggregations.get("total", {}).get("value") or 0)


def _to_series(key: str, values: list[int], starts: Mapping[int, str], before: int | None) -> TrendSeries:
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


RETENTION: Final[timedelta] = TRENDS.retention
"""Time for which counts go back."""


def build_layers_query(cluster: str, query: TrendsQuery, span: TrendRange) -> Json:
    """Build the search for the waits of placed pods by layer, at the time of their binds."""
    layers = [query.key] if query.key in LAYERS else list(LAYERS) if query.key is None else []
    filters = [
        match_cluster(cluster),
        *match_terms({"namespace": query.namespace}),
        *match_time_range("@timestamp", format_rfc3339(span.since), format_rfc3339(span.until)),
    ]
    aggregations = {name_layer_sum(layer): sum_layer(layer, times=_group_layer(layer, span)) for layer in layers}
    return {"size": 0, "track_total_hits": False, "query": combine(filters), "aggs": aggregations}


def _group_layer(layer: str, span: TrendRange) -> Json:
    total = {"total": {"sum": {"field": f"{layer}_wait_seconds"}}}
    return {"date_histogram": _build_histogram(span), "aggs": total}


def _to_series_answer(answer: Json) -> Json:
    """Convert the answer to ``build_layers_query`` into one to ``build_trends_query``; the largest layer first."""
    sums = answer.get("aggregations", {})
    by_layer = {layer: sums.get(name_layer_sum(layer), {}) for layer in LAYERS}
    buckets = [{"key": layer, **bucket} for layer, bucket in by_layer.items() if bucket.get("doc_count")]
    buckets.sort(key=lambda bucket: -bucket["total"]["value"])
    together: dict[int, float] = {}
    for time in (time for bucket in buckets for time in bucket["times"]["buckets"]):
        together[time["key"]] = together.get(time["key"], 0.0) + time["total"]["value"]
    times = [{"key": key, "total": {"value": value}} for key, value in together.items()]
    total = sum(bucket["total"]["value"] for bucket in buckets)
    return {"aggregations": {
        "series": {"buckets": buckets}, "times": {"buckets": times}, "total": {"value": total},
    }}  # fmt: skip


async def _read_layer_trends(index: OpenSearch, cluster: str, query: TrendsQuery, now: datetime) -> Trends:
    span = query.derive_range(now)
    answers = [
        _to_series_answer(await index.search(OCCUPANCY.alias, build_layers_query(cluster, query, part)))
        for part in (span, span.before)
    ]
    is_complete = span.before.since >= now - OCCUPANCY.retention
    return parse_trends(query, span, answers[0], answers[1] if is_complete else None)


async def read_trends(index: OpenSearch, cluster: str, query: TrendsQuery, now: datetime) -> Trends:
    """Read the counts of the range, with the totals of the range before if counts go back that far."""
    if query.by == "layer":
        return await _read_layer_trends(index, cluster, query, now)
    span = query.derive_range(now)
    answer = await index.search(TRENDS.alias, build_trends_query(cluster, query, span))
    before: dict[str, Any] | None = None
    if span.before.since >= now - RETENTION:
        keys = [str(bucket["key"]) for bucket in _get_counted(answer).get("series", {}).get("buckets", [])]
        before = await index.search(TRENDS.alias, build_totals_query(cluster, query, span.before, keys))
    return parse_trends(query, span, answer, before)

"""Devices that pods held, or waited for before they were placed, over time: seconds times devices, and their reader.

A part of a device counts as a device for each pod that holds one, and a wait in the bucket in which it ends, as in the
report.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from api.http.trends_query import TrendRange, TrendsQuery
from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import combine, match_cluster, match_terms, match_time_range
from api.index.report_queries import match_overlap, sum_held, sum_waited
from engine.summaries.trends import PoolOf
from schemas.answers.trends import Trends, TrendSeries
from schemas.codec.records import format_rfc3339
from schemas.indices import OCCUPANCY
from schemas.json_types import Json

_MAX_NODES: Final = 40_000


class _Interval(NamedTuple):
    since: datetime
    until: datetime


def build_placed_nodes_query(cluster: str, query: TrendsQuery, span: TrendRange) -> Json:
    """Build the search for the nodes on which a pod held a device in the range."""
    nodes = {"terms": {"field": "node", "size": _MAX_NODES}}
    return _build_body(cluster, query, _Interval(span.since, span.until), {"nodes": nodes})


def group_by_pool(answer: Json, pool_of: PoolOf, key: str | None) -> dict[str, list[str]]:
    """Group the nodes of the answer to ``build_placed_nodes_query`` by pool; only those of ``key`` if one is given."""
    members: dict[str, list[str]] = {}
    for bucket in answer.get("aggregations", {}).get("nodes", {}).get("buckets", []):
        pool = pool_of(bucket["key"])
        if pool and key in (None, pool):
            members.setdefault(pool, []).append(bucket["key"])
    return members


def build_device_trends_query(
    cluster: str,
    query: TrendsQuery,
    intervals: Sequence[_Interval],
    members: Mapping[str, Sequence[str]] | None,
    keys: Sequence[str] | None = None,
) -> Json:
    """Build the search for the sums of each interval: of all, by series, and of the pods that belong to none.

    members: nodes by pool; None if not by pool. keys: the only series to sum; None for the largest.
    """
    full_range = _Interval(intervals[0].since, intervals[-1].until)
    sums = {
        "total": _sum_seconds(query, full_range),
        **{
            f"bucket_{position}": {
                "filter": combine(_match_interval(query, interval)),
                "aggs": {"total": _sum_seconds(query, interval)},
            }
            for position, interval in enumerate(intervals)
        },
    }
    series: Json
    belonging: Json
    if members is None:
        belonging = {"exists": {"field": query.by}}
        terms: Json = {"field": query.by, "size": query.limit, "order": [{"total": "desc"}, {"_key": "asc"}]}
        series = {"terms": terms if keys is None else terms | {"include": list(keys)}, "aggs": sums}
    else:
        belonging = {"terms": {"node": [node for nodes in members.values() for node in nodes]}}
        filters = {pool: {"terms": {"node": nodes}} for pool, nodes in members.items()}
        series = {"filters": {"filters": filters}, "aggs": sums}
    # Without one pool or key there is nothing to filter by.
    has_series = members != {} and keys != []
    without = {"without": {"filter": {"bool": {"must_not": [belonging]}}, "aggs": sums}} if not query.key else {}
    return _build_body(cluster, query, full_range, sums | without | ({"series": series} if has_series else {}))


def _sum_seconds(query: TrendsQuery, interval: _Interval) -> Json:
    return sum_held(*interval) if query.count == "held_seconds" else sum_waited()


def _match_interval(query: TrendsQuery, interval: _Interval) -> list[Json]:
    """Match placements that overlap the interval, for devices held; or that began in it, for waits."""
    if query.count == "held_seconds":
        return match_overlap(*interval)
    return match_time_range("@timestamp", *map(format_rfc3339, interval))


def _build_body(cluster: str, query: TrendsQuery, interval: _Interval, aggregations: Json) -> Json:
    key = {query.by: query.key} if query.by != "pool" else {}
    clauses = [
        match_cluster(cluster),
        *match_terms({"namespace": query.namespace} | key),
        *_match_interval(query, interval),
        {"exists": {"field": "devices"}},
    ]
    return {"size": 0, "track_total_hits": False, "query": combine(clauses), "aggs": aggregations}


def parse_device_trends(query: TrendsQuery, span: TrendRange, answer: Json, before: Json | None) -> Trends:
    """Parse the answer for the range, and the one for the range before; None if placements do not go back so far."""
    count = len(_divide(span))
    buckets = _list_buckets(answer)
    totals_before = {key: _parse_total(bucket) for key, bucket in _list_buckets(before)} if before else None
    ranked = sorted(buckets, key=lambda item: (-_parse_total(item[1]), item[0]))[: query.limit]
    items = [
        _to_series(key, _parse_values(bucket, count), None if totals_before is None else totals_before.get(key, 0))
        for key, bucket in ranked
    ]
    unknown, named = None, [*items]
    if bucket := answer.get("aggregations", {}).get("without"):
        before_it = None if before is None else _parse_total(before.get("aggregations", {}).get("without", {}))
        unknown = _to_series("", _parse_values(bucket, count), before_it)
        named.append(unknown)
    together = _parse_values(answer.get("aggregations", {}), count)
    left = [max(0, total - sum(item.values[position] for item in named)) for position, total in enumerate(together)]
    left_before = None
    if before is not None and totals_before is not None:
        listed = sum(item.total_before or 0 for item in named)
        left_before = max(0, _parse_total(before.get("aggregations", {})) - listed)
    return Trends(
        by=query.by,
        count=query.count,
        since=format_rfc3339(span.since),
        until=format_rfc3339(span.until),
        interval_seconds=int(span.interval.total_seconds()),
        times=[format_rfc3339(interval.since) for interval in _divide(span)],
        items=items,
        other=_to_series("", left, left_before) if any(left) and not query.key else None,
        unknown=unknown if unknown and any(unknown.values) else None,
    )


def _divide(span: TrendRange) -> list[_Interval]:
    """Divide the range into its buckets; the last one ends with the range."""
    count = -(-(span.until - span.since) // span.interval)
    starts = [span.since + position * span.interval for position in range(count)]
    return [_Interval(start, min(start + span.interval, span.until)) for start in starts]


def _list_buckets(answer: Json) -> list[tuple[str, Json]]:
    buckets = answer.get("aggregations", {}).get("series", {}).get("buckets", [])
    return list(buckets.items()) if isinstance(buckets, dict) else [(bucket["key"], bucket) for bucket in buckets]


def _parse_total(bucket: Json) -> int:
    return round(bucket.get("total", {}).get("value") or 0)


def _parse_values(bucket: Json, count: int) -> list[int]:
    return [_parse_total(bucket.get(f"bucket_{position}", {})) for position in range(count)]


def _to_series(key: str, values: list[int], before: int | None) -> TrendSeries:
    # Devices are held for long: a level of such sums changes with each pod, and no test of counts applies to it.
    return TrendSeries(key=key, total=sum(values), total_before=before, values=values, changes=[])


async def read_device_trends(
    index: OpenSearch, cluster: str, query: TrendsQuery, now: datetime, pool_of: PoolOf | None
) -> Trends:
    """Read the sums of the range, with the totals of the range before if placements go back that far."""
    span = query.derive_range(now)
    members = await _read_members(index, cluster, query, span, pool_of)
    answer = await index.search(OCCUPANCY.alias, build_device_trends_query(cluster, query, _divide(span), members))
    before = None
    if span.before.since >= now - OCCUPANCY.retention:
        earlier = _Interval(span.before.since, span.before.until)
        members = await _read_members(index, cluster, query, span.before, pool_of)
        keys = [key for key, _ in _list_buckets(answer)] if members is None else None
        body = build_device_trends_query(cluster, query, [earlier], members, keys)
        before = await index.search(OCCUPANCY.alias, body)
    return parse_device_trends(query, span, answer, before)


async def _read_members(
    index: OpenSearch, cluster: str, query: TrendsQuery, span: TrendRange, pool_of: PoolOf | None
) -> dict[str, list[str]] | None:
    if query.by != "pool":
        return None
    if pool_of is None:
        return {}
    answer = await index.search(OCCUPANCY.alias, build_placed_nodes_query(cluster, query, span))
    return group_by_pool(answer, pool_of, query.key)

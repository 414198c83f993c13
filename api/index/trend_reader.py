"""Reads counts over time."""

from datetime import datetime
from typing import Any

from api.http.trends_query import TrendsQuery
from api.index.reading.client import OpenSearch
from api.index.trend_counts import KEPT, totals_query, trends_of, trends_query
from schemas.answers.trends import Trends
from schemas.indices import TRENDS


async def read_trends(index: OpenSearch, cluster: str, query: TrendsQuery, now: datetime) -> Trends:
    """The counts of the range, with the totals of the range before where counts go back so far."""
    span = query.derive_range(now)
    answer = await index.search(TRENDS.alias, trends_query(cluster, query, span))
    before: dict[str, Any] | None = None
    if span.before.since >= now - KEPT:
        keys = [str(bucket["key"]) for bucket in answer.get("aggregations", {}).get("series", {}).get("buckets", [])]
        before = await index.search(TRENDS.alias, totals_query(cluster, query, span.before, keys))
    return trends_of(query, span, answer, before)

"""Answers requests about counts over time."""

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import list_pods
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.query_params import refuse_repeated
from api.http.tables import CSV, to_csv
from api.http.trends_query import TrendsQuery
from api.index.reading.client import OpenSearch
from api.index.trend_counts import read_trends
from schemas.answers.trends import Trends


@dataclass(frozen=True, slots=True)
class TrendHandlers:
    index: OpenSearch

    async def trends(self, request: Request, cluster: Cluster, query: TrendsQuery) -> Response:
        """Counts of attempts over time by reason, namespace, pool, model, result, workload or queue.

        The largest series come first, each with its total in the range of the same length before, and with the buckets
        at which its level changes. Retries count as attempts of their own. An attempt that was refused for several
        reasons counts for each of them.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        body = await read_trends(self.index, cluster.name, query, datetime.now(UTC))
        headers = {"Vary": "Accept"}
        if query.format == "csv" or (query.format is None and CSV in request.headers.get("accept", "")):
            return Response(_table(body), 200, headers, f"{CSV}; charset=utf-8")
        return to_json_response(200, body, headers)


def _table(trends: Trends) -> str:
    series = [*trends.items, *([trends.other] if trends.other else [])]
    rows = (
        [time, trends.by, item.key, value]
        for item in series
        for time, value in zip(trends.times, item.values, strict=True)
    )
    return to_csv(["time", "by", "key", trends.count], rows)

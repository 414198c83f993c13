"""Handlers of counts over time, and of the report of failures."""

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from api.answers.report_collector import ReportCollector
from api.authority.access import get_access
from api.authority.rights import LIST_NODES, list_pods
from api.http.cluster import Cluster
from api.http.errors import BadRequestError, to_json_response
from api.http.query_params import refuse_repeated
from api.http.tables import CSV, to_csv
from api.http.trends_query import DEVICE_SECONDS, ReportQuery, TrendsQuery
from api.index.device_trends import read_device_trends
from api.index.reading.client import OpenSearch
from api.index.trend_counts import read_trends
from engine.summaries.node_pools import SETTING
from engine.summaries.trends import PoolOf
from page.report_file import write_file
from schemas.answers.trends import Trends


@dataclass(frozen=True, slots=True)
class TrendHandlers:
    index: OpenSearch
    pool_of: PoolOf | None = None
    """Pools by the names of nodes; None if no setting defines any."""

    async def list_trends(self, request: Request, cluster: Cluster, query: TrendsQuery) -> Response:
        """Count attempts over time by obstacle, reason, namespace, pool, model, result, workload or queue, waits by
        layer, or devices that pods held or waited for.

        The largest series come first, each with its total in the range of the same length before, and with the buckets
        at which its level changes. Retries count as attempts of their own. An attempt counts under one obstacle, which
        decided it, and with `by=reason` under every reason that it was refused for.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, list_pods(query.namespace))
        now = datetime.now(UTC)
        if query.count in DEVICE_SECONDS:
            if query.by == "pool" and self.pool_of is None:
                raise BadRequestError("no pool of nodes is defined", f"Set {SETTING} of the API.")
            body = await read_device_trends(self.index, cluster.name, query, now, self.pool_of)
        else:
            body = await read_trends(self.index, cluster.name, query, now)
        headers = {"Vary": "Accept"}
        if query.format == "csv" or (query.format is None and CSV in request.headers.get("accept", "")):
            return Response(_to_table(body), 200, headers, f"{CSV}; charset=utf-8")
        return to_json_response(200, body, headers)


def _to_table(trends: Trends) -> str:
    rows = (
        [time, trends.by, item.key, value]
        for item in trends.list_series(unknown="unknown")
        for time, value in zip(trends.times, item.values, strict=True)
    )
    return to_csv(["time", "by", "key", trends.count], rows)


MEDIA = {"csv": "text/csv", "markdown": "text/markdown", "html": "text/html"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
"""Policy of the report as a file, which contains its style and loads nothing."""


@dataclass(frozen=True, slots=True)
class ReportHandlers:
    reports: ReportCollector

    async def report_failures(self, request: Request, cluster: Cluster, query: ReportQuery) -> Response:
        """Report the failures of a range of time: reasons with remedies, GPU-hours by cause, waits, and findings.

        Only callers who may list nodes see the free devices of nodes. Counts include retries.
        """
        refuse_repeated(request)
        access = get_access(request)
        await access.require(cluster, list_pods(query.namespace))
        sees_nodes = await access.allows(cluster, LIST_NODES)
        report = await self.reports.collect(cluster.name, query, datetime.now(UTC), sees_nodes=sees_nodes)
        if query.format == "json":
            return to_json_response(200, report)
        headers = {"Content-Security-Policy": _POLICY} if query.format == "html" else {}
        return Response(write_file(report, query.format), 200, headers, f"{MEDIA[query.format]}; charset=utf-8")

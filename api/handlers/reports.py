"""Answers requests for reports."""

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from api.answers.report_collector import ReportCollector
from api.authority.access import get_access
from api.authority.rights import LIST_NODES, list_pods
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.query_params import refuse_repeated
from api.http.trends_query import ReportQuery
from page.report_file import write_file

MEDIA = {"csv": "text/csv", "markdown": "text/markdown", "html": "text/html"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
"""The policy of the report as a file: it contains its own style and loads nothing."""


@dataclass(frozen=True, slots=True)
class ReportHandlers:
    reports: ReportCollector

    async def failures(self, request: Request, cluster: Cluster, query: ReportQuery) -> Response:
        """The failures of a range of time: reasons with remedies, GPU-hours by cause, times to placement, findings.

        What is free on nodes is shown to who may list nodes. Counts include retries.
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

"""Collector of the report of failures of a range of time, and the report as a text for the command line."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from api.http.trends_query import MAX_SERIES, ReportQuery, TrendsQuery
from api.index.nodes.cluster_states import read_cordoned_nodes, read_states_at
from api.index.nodes.last_registrations import read_unregistered_for
from api.index.reading.client import OpenSearch
from api.index.report_queries import (
    build_findings_query,
    build_held_query,
    build_placed_query,
    build_waiting_query,
    find_smallest_request,
    measure_fragmentation,
    parse_findings,
    parse_layer_waits,
    parse_percentiles,
    parse_placed,
    parse_usage,
    parse_waiting,
)
from api.index.trend_counts import read_trends
from api.index.waiting.waiting_pods import TRIED_WITHIN
from api.index.waiting.waiting_requests import read_waiting_requests
from engine.diagnosis.texts import describe_code, find_actors
from engine.fit import device_config
from engine.fit.devices.as_of import rebuild_columns
from engine.hami.vendors import Vendors
from engine.suggestions.admission import build_suggestions_for_many, judge
from page.report_file import write_file
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.answers.reports import AttemptsReported, FailureReport, ReasonReported
from schemas.answers.suggestions import AdmittingChangeFound
from schemas.answers.trends import Trends, TrendSeries
from schemas.codec.records import encode_value, format_rfc3339
from schemas.events import NodeStateChanged
from schemas.events.summaries import BIND_REASONS
from schemas.indices import FINDINGS, OCCUPANCY, POD_STATES
from schemas.reasons import Language

LISTED: Final = 10
"""Number of reasons, namespaces and pools in the report; the trends have the others."""


@dataclass(frozen=True, slots=True)
class ReportCollector:
    index: OpenSearch
    vendors: Vendors

    async def collect(self, cluster: str, query: ReportQuery, now: datetime, *, sees_nodes: bool) -> FailureReport:
        """Collect the report. With ``sees_nodes`` it has the free devices of nodes. Raises as ``OpenSearch.search``."""
        moment = now.astimezone(UTC)
        counts = [
            self._read_counts(cluster, query, dimension, moment)
            for dimension in ("obstacle", "reason", "result", "namespace", "pool")
        ]
        # More series than the report shows: the reasons with the most devices may not have the most attempts.
        devices = self._read_counts(cluster, query, "reason", moment, count="devices", limit=MAX_SERIES)
        # Separate: refusals of nodes are so frequent that failed binds would not be among the largest reasons.
        binds = [self._read_counts(cluster, query, "reason", moment, key=code) for code in BIND_REASONS]
        obstacles, reasons, results, namespaces, pools, refused, *bind = await asyncio.gather(*counts, devices, *binds)
        binds_failed = [item for trends in bind for item in trends.items]
        # For a code only in the range before, the series of the others counts.
        before = [item.total_before or 0 for trends in bind for item in (*trends.items, trends.other) if item]
        since, until = reasons.since, reasons.until
        tried = format_rfc3339(moment - TRIED_WITHIN)
        bounds = (datetime.fromisoformat(since), datetime.fromisoformat(until))
        waiting, placed, held, findings = await asyncio.gather(
            self.index.search(POD_STATES.alias, build_waiting_query(cluster, query.namespace, tried)),
            self.index.search(OCCUPANCY.alias, build_placed_query(cluster, query.namespace, since, until)),
            self.index.search(OCCUPANCY.alias, build_held_query(cluster, query.namespace, *bounds)),
            self.index.search(FINDINGS.alias, build_findings_query(cluster, query.namespace, since, until)),
        )
        states = (await read_states_at(self.index, cluster, None, moment)).states if sees_nodes else []
        cordoned = await read_cordoned_nodes(self.index, cluster, moment) if states else frozenset()
        failed = next((item for item in results.items if item.key == "failed"), None)
        return FailureReport(
            cluster=cluster,
            namespace=query.namespace,
            since=since,
            until=until,
            language=query.lang,
            attempts=sum(item.total for item in results.items),
            failed=failed.total if failed else 0,
            failed_before=failed.total_before if failed else None,
            bind_failed=sum(item.total for item in binds_failed),
            bind_failed_before=sum(before) if failed and failed.total_before is not None else None,
            obstacles=[_to_reason(item, refused, query.lang) for item in obstacles.items],
            reasons=[_to_reason(item, refused, query.lang) for item in _with_binds(reasons.items, binds_failed)],
            over_time=obstacles,
            namespaces=_to_reported(namespaces),
            pools=_to_reported(pools),
            waiting=parse_waiting(waiting, moment.timestamp()),
            placed=parse_placed(placed),
            layers=parse_layer_waits(placed, waiting, moment),
            usage=parse_usage(held, waiting, placed, moment.timestamp()),
            time_to_placement=parse_percentiles(placed, "placement"),
            time_to_start=parse_percentiles(placed, "start"),
            fragmentation=measure_fragmentation(states, find_smallest_request(waiting), cordoned) if states else None,
            findings=parse_findings(findings),
            best_change=await self._find_best_change(cluster, query.namespace, moment, states) if states else None,
        )

    async def _read_counts(
        self, cluster: str, query: ReportQuery, dimension: str, moment: datetime, **more: Any
    ) -> Trends:
        parameters: dict[str, Any] = {
            "by": dimension,
            "namespace": query.namespace,
            "since": query.since,
            "until": query.until,
        }
        # By result all attempts count: the failed ones are one of its series.
        parameters |= {} if dimension == "result" else {"result": "failed"}
        wanted = TrendsQuery.model_validate({"limit": LISTED} | parameters | more)
        return await read_trends(self.index, cluster, wanted, moment)

    async def _find_best_change(
        self, cluster: str, namespace: str | None, moment: datetime, states: Sequence[NodeStateChanged]
    ) -> AdmittingChangeFound | None:
        waiting = await read_waiting_requests(self.index, cluster, namespace, format_rfc3339(moment - TRIED_WITHIN))
        columns = await asyncio.to_thread(rebuild_columns, states, self.vendors)
        unregistered = await read_unregistered_for(self.index, columns, cluster, waiting.requests, moment)
        judged = await asyncio.to_thread(judge, columns, waiting.requests, unregistered)
        return next(iter(build_suggestions_for_many(cluster, namespace, moment, waiting.pods, judged, ()).items), None)


def _to_reason(series: TrendSeries, refused: Trends, language: Language) -> ReasonReported:
    meaning, remedy = describe_code(series.key, language)
    return ReasonReported(
        code=series.key,
        attempts=series.total,
        attempts_before=series.total_before,
        devices=next((item.total for item in refused.items if item.key == series.key), 0),
        meaning=meaning,
        remedy=remedy,
        who_acts=find_actors(series.key),
    )


def _with_binds(reasons: Sequence[TrendSeries], binds: Sequence[TrendSeries]) -> list[TrendSeries]:
    listed = {item.key for item in reasons}
    return [*reasons, *(item for item in binds if item.key not in listed)]


def _to_reported(trends: Trends) -> list[AttemptsReported]:
    return [AttemptsReported(key=item.key, failed=item.total, failed_before=item.total_before) for item in trends.items]


async def write_report(connection: OpenSearchConnection, cluster: str, query: ReportQuery) -> str:
    """Write the report as a text in the format of the query. Raises as ``OpenSearch.search``."""
    client = create_client(connection)
    try:
        index = OpenSearch(client, lambda *_: None, connection.opensearch_timeout.total_seconds())
        collector = ReportCollector(index, device_config.read_shipped())
        # Who may read the whole index may see nodes.
        report = await collector.collect(cluster, query, datetime.now(UTC), sees_nodes=True)
    finally:
        await client.close()
    if query.format == "json":
        return orjson.dumps(orjson.loads(encode_value(report)), option=orjson.OPT_INDENT_2).decode() + "\n"
    return write_file(report, query.format)

"""Start of a waiting pod, and the pods before it: its forecast, the record of forecasts, and the order of pods."""

import asyncio
from datetime import datetime
from typing import Final

from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import combine, match_cluster, match_term, sort_by, sort_latest_first
from engine.forecasts.outlook import MAX_NAMES, PodsBefore, build_outlook, count_right
from schemas.answers.diagnosis import StartOutlook
from schemas.codec.records import Rejected
from schemas.documents.forecasts import FORECAST_KIND, match_pods_before, read_forecast
from schemas.documents.placements import read_placement
from schemas.events import AttemptSummarized, PodWait
from schemas.forecasts import MAX_JUDGED, Basis, ForecastRecord, StartForecast
from schemas.indices import OBSERVATIONS, OCCUPANCY, POD_STATES
from schemas.json_types import Json

_FIELDS_OF_PLACEMENTS: Final = ["cluster", "namespace", "pod", "pod_uid", "node", "@timestamp", "forecasts"]


async def read_outlook(index: OpenSearch, attempt: AttemptSummarized, now: datetime) -> StartOutlook | None:
    """Read what is known of the start of a pod that its latest attempt refused for devices of nodes; None for another.

    Raises ``IndexDownError``, ``IndexRefusedError``.
    """
    wait = attempt.wait
    if wait is None or not (attempt.pod.uid and wait.missing_devices and wait.models):
        return None
    order, forecasts = await asyncio.gather(
        index.search(POD_STATES.alias, _build_order_query(attempt, wait)),
        index.search(OBSERVATIONS.alias, _build_forecasts_query(attempt)),
    )
    forecast = _parse_forecast(forecasts, wait.code)
    record = ForecastRecord(0, 0)
    if forecast and forecast.basis:
        judged = await index.search(OCCUPANCY.alias, _build_judged_query(attempt.cluster))
        record = _parse_record(judged, forecast.basis)
    return build_outlook(_parse_order(order, attempt), forecast, record, now)


def _build_order_query(attempt: AttemptSummarized, wait: PodWait) -> Json:
    judged_at = attempt.first_judged_at or attempt.started_at
    return {
        "query": match_pods_before(attempt.cluster, wait, attempt.description, judged_at),
        "sort": [sort_by("priority", "desc", "long"), sort_by("created_at", "asc", "date"), sort_by("pod_uid")],
        # The pod itself is among them.
        "size": MAX_NAMES + 1,
        "_source": ["namespace", "pod", "pod_uid"],
        "track_total_hits": True,
        "aggs": {"itself": {"filter": match_term("pod_uid", attempt.pod.uid)}},
    }


def _parse_order(answer: Json, attempt: AttemptSummarized) -> PodsBefore:
    itself = answer.get("aggregations", {}).get("itself", {}).get("doc_count", 0)
    others = [hit["_source"] for hit in answer["hits"]["hits"] if hit["_source"].get("pod_uid") != attempt.pod.uid]
    names = [f"{source['namespace']}/{source['pod']}" for source in others[:MAX_NAMES]]
    return PodsBefore(answer["hits"]["total"]["value"] - itself, names, is_current=itself > 0)


def _build_forecasts_query(attempt: AttemptSummarized) -> Json:
    clauses = [
        match_cluster(attempt.cluster),
        match_term("kind", FORECAST_KIND),
        match_term("pod_uid", attempt.pod.uid),
    ]
    return {
        "query": combine(clauses),
        "sort": [sort_latest_first("@timestamp")],
        "size": 1,
        "_source": ["event"],
        "track_total_hits": False,
    }


def _parse_forecast(answer: Json, obstacle: str) -> StartForecast | None:
    """Parse the latest forecast; None without one, and where it is about an obstacle that is no longer the main one."""
    forecasts = [read_forecast(hit["_source"]) for hit in answer["hits"]["hits"]]
    latest = forecasts[0] if forecasts else None
    return None if latest is None or isinstance(latest, Rejected) or latest.obstacle != obstacle else latest


def _build_judged_query(cluster: str) -> Json:
    return {
        "query": combine([match_cluster(cluster), {"range": {"forecasts_judged": {"gt": 0}}}]),
        "sort": [sort_latest_first("@timestamp")],
        # Both bases are among them.
        "size": 4 * MAX_JUDGED,
        "_source": _FIELDS_OF_PLACEMENTS,
        "track_total_hits": False,
    }


def _parse_record(answer: Json, basis: Basis) -> ForecastRecord:
    placements = [read_placement(hit["_id"], hit["_source"]) for hit in answer["hits"]["hits"]]
    return count_right([placement for placement in placements if not isinstance(placement, Rejected)], basis)

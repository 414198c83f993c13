"""Forecasts of starts in the index of observations, and the clauses for pods that come before another one."""

from datetime import datetime
from typing import Any, Final

from ..codec.records import Rejected, format_rfc3339, read
from ..events import PodDescription, PodWait
from ..forecasts import StartForecast
from .pod_states import WAITING

FORECAST_KIND: Final = "start-forecast"
_TRIED_SINCE: Final = "now-30m"
"""Age of an attempt after which a pod no longer counts as waiting: its end may not have been observed."""


def build_forecast_document(forecast: StartForecast) -> dict[str, Any]:
    return {
        "@timestamp": format_rfc3339(forecast.given_at),
        "kind": FORECAST_KIND,
        "cluster": forecast.cluster,
        "namespace": forecast.pod.namespace,
        "pod": forecast.pod.name,
        "pod_uid": forecast.pod.uid,
        "event": forecast,
    }


def read_forecast(document: dict[str, Any]) -> StartForecast | Rejected:
    """Read the forecast of a document (its ``_source``)."""
    return read(StartForecast, document.get("event"), "document.event")


def match_pods_before(
    cluster: str, wait: PodWait, description: PodDescription | None, judged_at: datetime
) -> dict[str, Any]:
    """Build the query of pod states for waiting pods that are not behind a pod in kube-scheduler's order; it is one.

    That is by priority, where none counts as 0, then by creation. Whole seconds make pods level that are not.
    judged_at: start of the pod's first attempt, which counts where its creation is not known.
    """
    rank = (description.priority if description else None) or 0
    created_at = description.created_at if description else None
    field, moment = ("created_at", created_at) if created_at else ("first_judged_at", judged_at)
    no_priority = {"bool": {"must_not": [{"exists": {"field": "priority"}}]}}
    above = _match_any({"range": {"priority": {"gt": rank}}}, *([no_priority] if rank < 0 else []))
    level = _match_any({"term": {"priority": rank}}, *([] if rank else [no_priority]))
    earlier = {"range": {field: {"lte": format_rfc3339(moment)}}}
    filters = [
        {"term": {"cluster": cluster}},
        {"term": {"state": WAITING}},
        {"term": {"layer": "nodes"}},
        {"terms": {"models": wait.models}},
        {"range": {"@timestamp": {"gte": _TRIED_SINCE}}},
        _match_any(above, {"bool": {"filter": [level, earlier]}}),
    ]
    return {"bool": {"filter": filters}}


def _match_any(*clauses: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"should": list(clauses), "minimum_should_match": 1}}

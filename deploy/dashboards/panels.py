"""The parts of a visualization: aggregations, and the parameters that each kind of chart needs. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from deploy.dashboards.saved_objects import SavedObject, search_source, text
from schemas.json_types import Json

METRIC: Final = "metric"
GROUP: Final = "group"
"""The aggregation whose values become the series of a chart."""
X_AXIS: Final = "segment"
ROWS: Final = "bucket"
"""The aggregation whose values become the rows of a table."""


def count(schema: str = METRIC, label: str = "") -> Json:
    return _agg("count", schema, label)


def metric(kind: str, field: str, label: str = "", **params: Any) -> Json:
    """Build a metric of a field: ``sum``, ``min``, ``max``, ``cardinality`` or ``percentiles``."""
    return _agg(kind, METRIC, label, field=field, **params)


def latest(field: str, label: str) -> Json:
    """Build the metric of the value in the latest document."""
    order = {"sortField": "@timestamp", "sortOrder": "desc"}
    return _agg("top_hits", METRIC, label, field=field, aggregate="concat", size=1, **order)


def terms(field: str, schema: str, size: int, order_by: str = "1", order: str = "desc", label: str = "") -> Json:
    """Group by the values of a field; ``order_by`` is the id of a metric, as ``visualization`` counts them from 1."""
    rest = {"otherBucket": False, "missingBucket": False}
    return _agg("terms", schema, label, field=field, size=size, orderBy=order_by, order=order, **rest)


def over_time(field: str = "@timestamp") -> Json:
    """Group along the x-axis, in intervals that Dashboards chooses by the time range."""
    params = {"field": field, "interval": "auto", "useNormalizedOpenSearchInterval": True}
    return _agg("date_histogram", X_AXIS, "", **params, drop_partials=False, min_doc_count=1, extended_bounds={})


def _agg(kind: str, schema: str, label: str, **params: Any) -> Json:
    return {"type": kind, "schema": schema, "params": params | ({"customLabel": label} if label else {})}


def visualization(
    object_id: str, title: str, about: str, kind: str, index_pattern: str, query: str, aggs: Sequence[Json]
) -> SavedObject:
    """Build a visualization. ``kind`` is ``histogram``, ``line``, ``horizontal_bar``, ``metric`` or ``table``."""
    numbered = [{"id": str(number), "enabled": True} | agg for number, agg in enumerate(aggs, 1)]
    params = _PARAMS[kind](kind, numbered) if kind in _PARAMS else {}
    source, references = search_source(query, index_pattern)
    return _saved(object_id, title, about, {"type": kind, "params": params, "aggs": numbered}, source, references)


def markdown(object_id: str, title: str, words: str) -> SavedObject:
    source, references = search_source("", None)
    params = {"markdown": words, "fontSize": 12, "openLinksInNewTab": True}
    return _saved(object_id, title, "", {"type": "markdown", "params": params, "aggs": []}, source, references)


def _saved(object_id: str, title: str, about: str, state: Json, *source: Any) -> SavedObject:
    search, references = source
    attributes = {
        "title": title,
        "description": about,
        "visState": text({"title": title} | state),
        "uiStateJSON": "{}",
        "version": 1,
        **search,
    }
    return SavedObject("visualization", object_id, attributes, references)


def _axes(kind: str, aggs: Sequence[Json]) -> Json:
    """Build the axes of bars and lines: one of categories, one of values, and a series for each metric."""
    lies = kind == "horizontal_bar"
    category = {
        "id": "CategoryAxis-1",
        "type": "category",
        "position": "left" if lies else "bottom",
        "show": True,
        "style": {},
        "scale": {"type": "linear"},
        "labels": {"show": True, "filter": not lies, "truncate": 200},
        "title": {},
    }
    value = {
        "id": "ValueAxis-1",
        "name": "LeftAxis-1" if not lies else "BottomAxis-1",
        "type": "value",
        "position": "bottom" if lies else "left",
        "show": True,
        "style": {},
        "scale": {"type": "linear", "mode": "normal"},
        "labels": {"show": True, "rotate": 0, "filter": lies, "truncate": 100},
        "title": {"text": ""},
    }
    return {
        "type": "histogram" if lies else kind,
        "grid": {"categoryLines": False},
        "categoryAxes": [category],
        "valueAxes": [value],
        "seriesParams": [_series(kind, agg) for agg in aggs if agg["schema"] == METRIC],
        "addTooltip": True,
        "addLegend": True,
        "legendPosition": "right",
        "times": [],
        "addTimeMarker": False,
        "labels": {"show": lies},
        "thresholdLine": {"show": False, "value": 10, "width": 1, "style": "full", "color": "#E7664C"},
    }


def _series(kind: str, agg: Json) -> Json:
    is_line = kind == "line"
    return {
        "show": True,
        "type": "line" if is_line else "histogram",
        "mode": "normal" if is_line else "stacked",
        "data": {"label": agg["params"].get("customLabel", "Count"), "id": agg["id"]},
        "valueAxis": "ValueAxis-1",
        "drawLinesBetweenPoints": True,
        "lineWidth": 2,
        "interpolate": "linear",
        "showCircles": True,
    }


def _table(_kind: str, _aggs: Sequence[Json]) -> Json:
    return {
        "perPage": 10,
        "showPartialRows": False,
        "showMetricsAtAllLevels": False,
        "showTotal": False,
        "totalFunc": "sum",
        "percentageCol": "",
    }


def _numbers(_kind: str, _aggs: Sequence[Json]) -> Json:
    style = {"bgFill": "#000", "bgColor": False, "labelColor": False, "subText": "", "fontSize": 36}
    metric_params = {
        "percentageMode": False,
        "useRanges": False,
        "colorSchema": "Green to Red",
        "metricColorMode": "None",
        "colorsRange": [{"from": 0, "to": 10000}],
        "labels": {"show": True},
        "invertColors": False,
        "style": style,
    }
    return {"addTooltip": True, "addLegend": False, "type": "metric", "metric": metric_params}


_PARAMS: Final = {"histogram": _axes, "line": _axes, "horizontal_bar": _axes, "table": _table, "metric": _numbers}

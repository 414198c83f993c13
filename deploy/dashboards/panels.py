"""Parts of a visualization: aggregations, and the parameters that each kind of chart needs. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from deploy.dashboards.saved_objects import SavedObject, build_search_source, to_json_text
from schemas.json_types import Json

METRIC: Final = "metric"
GROUP: Final = "group"
"""Aggregation whose values become the series of a chart."""
X_AXIS: Final = "segment"
ROWS: Final = "bucket"
"""Aggregation whose values become the rows of a table."""


def count_documents(schema: str = METRIC, label: str = "") -> Json:
    return _build_aggregation("count", schema, label)


def aggregate_field(kind: str, field: str, label: str = "", **params: Any) -> Json:
    """Aggregate a field into a metric: ``sum``, ``min``, ``max``, ``cardinality`` or ``percentiles``."""
    return _build_aggregation(kind, METRIC, label, field=field, **params)


def take_latest(field: str, label: str) -> Json:
    """Take the value of the latest document as a metric."""
    order = {"sortField": "@timestamp", "sortOrder": "desc"}
    return _build_aggregation("top_hits", METRIC, label, field=field, aggregate="concat", size=1, **order)


def group_by_value(
    field: str, schema: str, size: int, order_by: str = "1", order: str = "desc", label: str = ""
) -> Json:
    """Group by the values of a field; ``order_by`` is the id of a metric, counted from 1 within the visualization."""
    other_buckets = {"otherBucket": False, "missingBucket": False}
    return _build_aggregation(
        "terms", schema, label, field=field, size=size, orderBy=order_by, order=order, **other_buckets
    )


def group_by_time(field: str = "@timestamp") -> Json:
    """Group along the x-axis, in intervals that Dashboards chooses by the time range."""
    params = {"field": field, "interval": "auto", "useNormalizedOpenSearchInterval": True}
    return _build_aggregation(
        "date_histogram", X_AXIS, "", **params, drop_partials=False, min_doc_count=1, extended_bounds={}
    )


def _build_aggregation(kind: str, schema: str, label: str, **params: Any) -> Json:
    return {"type": kind, "schema": schema, "params": params | ({"customLabel": label} if label else {})}


def set_widths(*pixels: int) -> Json:
    """Set the widths of a table's columns: Dashboards makes all equal, and cuts what is longer."""
    return {"vis": {"columnsWidth": [{"colIndex": number, "width": width} for number, width in enumerate(pixels)]}}


RESULT_COLOURS: Final[Json] = {"vis": {"colors": {"failed": "#E7664C", "succeeded": "#54B399", "pending": "#D6BF57"}}}
"""Colours of results; by itself Dashboards gives green to the first, which is `failed`."""


def build_visualization(
    object_id: str,
    title: str,
    description: str,
    kind: str,
    index_pattern: str,
    query: str,
    aggs: Sequence[Json],
    ui_state: Json | None = None,
) -> SavedObject:
    """Build a visualization. ``kind`` is ``histogram``, ``line``, ``horizontal_bar``, ``metric`` or ``table``."""
    numbered = [{"id": str(number), "enabled": True} | agg for number, agg in enumerate(aggs, 1)]
    params = _PARAMS[kind](kind, numbered) if kind in _PARAMS else {}
    source, references = build_search_source(query, index_pattern)
    return _build_saved_object(
        object_id, title, description, {"type": kind, "params": params, "aggs": numbered}, ui_state, source, references
    )


def build_text_panel(object_id: str, title: str, words: str) -> SavedObject:
    source, references = build_search_source("", None)
    params = {"markdown": words, "fontSize": 12, "openLinksInNewTab": True}
    return _build_saved_object(
        object_id, title, "", {"type": "markdown", "params": params, "aggs": []}, None, source, references
    )


def _build_saved_object(
    object_id: str, title: str, description: str, state: Json, ui_state: Json | None, *source: Any
) -> SavedObject:
    search, references = source
    attributes = {
        "title": title,
        "description": description,
        "visState": to_json_text({"title": title} | state),
        "uiStateJSON": to_json_text(ui_state or {}),
        "version": 1,
        **search,
    }
    return SavedObject("visualization", object_id, attributes, references)


def _build_axes(kind: str, aggs: Sequence[Json]) -> Json:
    """Build the axes of bars and lines: one of categories, one of values, and a series for each metric."""
    is_horizontal = kind == "horizontal_bar"
    category = {
        "id": "CategoryAxis-1",
        "type": "category",
        "position": "left" if is_horizontal else "bottom",
        "show": True,
        "style": {},
        "scale": {"type": "linear"},
        "labels": {"show": True, "filter": not is_horizontal, "truncate": 200},
        "title": {},
    }
    value = {
        "id": "ValueAxis-1",
        "name": "LeftAxis-1" if not is_horizontal else "BottomAxis-1",
        "type": "value",
        "position": "bottom" if is_horizontal else "left",
        "show": True,
        "style": {},
        "scale": {"type": "linear", "mode": "normal"},
        "labels": {"show": True, "rotate": 0, "filter": is_horizontal, "truncate": 100},
        "title": {"text": ""},
    }
    return {
        "type": "histogram" if is_horizontal else kind,
        "grid": {"categoryLines": False},
        "categoryAxes": [category],
        "valueAxes": [value],
        "seriesParams": [_build_series(kind, agg) for agg in aggs if agg["schema"] == METRIC],
        "addTooltip": True,
        "addLegend": True,
        # Next to the chart a name has room for twenty characters, below it for all of them.
        "legendPosition": "bottom",
        "times": [],
        "addTimeMarker": False,
        "labels": {"show": is_horizontal},
        "thresholdLine": {"show": False, "value": 10, "width": 1, "style": "full", "color": "#E7664C"},
    }


def _build_series(kind: str, agg: Json) -> Json:
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


def _build_table(_kind: str, _aggs: Sequence[Json]) -> Json:
    return {
        "perPage": 10,
        "showPartialRows": False,
        "showMetricsAtAllLevels": False,
        "showTotal": False,
        "totalFunc": "sum",
        "percentageCol": "",
    }


def _build_numbers(_kind: str, _aggs: Sequence[Json]) -> Json:
    style = {"bgFill": "#000", "bgColor": False, "labelColor": False, "subText": "", "fontSize": 20}
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


_PARAMS: Final = {
    "histogram": _build_axes,
    "line": _build_axes,
    "horizontal_bar": _build_axes,
    "table": _build_table,
    "metric": _build_numbers,
}

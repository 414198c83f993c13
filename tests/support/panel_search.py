"""The search that OpenSearch Dashboards sends for a visualization or a saved search, made from the object's JSON alone.

Dashboards makes one request a panel: its query, the time range on the pattern's time field, and the aggregations nested
in the order of the buckets, with all metrics in the innermost one.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

_METRIC: Final = "metric"
INTERVAL: Final = "1h"
"""Interval in the place of ``auto``, which Dashboards replaces by what suits the width of the panel."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The objects of an NDJSON file, by type and id."""

    objects: dict[tuple[str, str], Any]

    @classmethod
    def read(cls, content: bytes) -> "Imported":
        lines = [json.loads(line) for line in content.splitlines()]
        return cls({(saved["type"], saved["id"]): saved for saved in lines})

    def select_type(self, kind: str) -> dict[str, Any]:
        return {name: saved for (saved_kind, name), saved in self.objects.items() if saved_kind == kind}

    def get_pattern(self, saved: Any) -> Any | None:
        """Return the index pattern that the object searches; None for one that searches nothing."""
        source = search_source(saved)
        if "indexRefName" not in source:
            return None
        (reference,) = (ref for ref in saved["references"] if ref["name"] == source["indexRefName"])
        return self.objects[reference["type"], reference["id"]]


def search_source(saved: Any) -> Any:
    return json.loads(saved["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])


def list_aggs(panel: Any) -> list[Any]:
    aggs: list[Any] = json.loads(panel["attributes"]["visState"])["aggs"]
    return aggs


def query_of(saved: Any, pattern: Any, since: str, until: str) -> Any:
    text = search_source(saved)["query"]
    assert text["language"] == "lucene"
    words = text["query"]
    clauses = [{"query_string": {"query": words, "analyze_wildcard": True}} if words else {"match_all": {}}]
    if time_field := pattern["attributes"].get("timeFieldName"):
        clauses.append({"range": {time_field: {"gte": since, "lte": until, "format": "strict_date_optional_time"}}})
    return {"bool": {"filter": clauses}}


def search_body(panel: Any, pattern: Any, since: str, until: str) -> Any:
    """Build the body of the request of a visualization."""
    aggs = [agg for agg in list_aggs(panel) if agg["enabled"]]
    metrics = {agg["id"]: _build_metric(agg) for agg in aggs if agg["schema"] == _METRIC and agg["type"] != "count"}
    counts = {agg["id"] for agg in aggs if agg["type"] == "count"}
    nested = metrics
    for agg in reversed([agg for agg in aggs if agg["schema"] != _METRIC]):
        # A bucket that is ordered by a metric needs that metric beside its inner buckets.
        ordering = {name: metrics[name] for name in _list_orders(agg) if name in metrics}
        nested = {agg["id"]: _build_bucket(agg, counts) | ({"aggs": nested | ordering} if nested | ordering else {})}
    return {"size": 0, "track_total_hits": True, "query": query_of(panel, pattern, since, until), "aggs": nested}


def _list_orders(agg: Any) -> list[str]:
    return [agg["params"]["orderBy"]] if agg["type"] == "terms" else []


def _build_metric(agg: Any) -> Any:
    params = agg["params"]
    if agg["type"] == "top_hits":
        order = [{params["sortField"]: {"order": params["sortOrder"]}}]
        return {"top_hits": {"size": params["size"], "sort": order, "docvalue_fields": [params["field"]]}}
    if agg["type"] == "percentiles":
        return {"percentiles": {"field": params["field"], "percents": params["percents"]}}
    assert agg["type"] in ("sum", "min", "max", "avg", "cardinality")
    return {agg["type"]: {"field": params["field"]}}


def _build_bucket(agg: Any, counts: set[str]) -> Any:
    params = agg["params"]
    if agg["type"] == "date_histogram":
        assert params["interval"] == "auto"
        return {
            "date_histogram": {
                "field": params["field"],
                "fixed_interval": INTERVAL,
                "min_doc_count": params["min_doc_count"],
            }
        }
    assert agg["type"] == "terms"
    order_key = "_count" if params["orderBy"] in counts else params["orderBy"]
    return {"terms": {"field": params["field"], "size": params["size"], "order": {order_key: params["order"]}}}


def collect_fields(panel: Any) -> set[str]:
    """Collect every field that a visualization asks for."""
    params = [agg["params"] for agg in list_aggs(panel)]
    return {param[name] for param in params for name in ("field", "sortField") if name in param}

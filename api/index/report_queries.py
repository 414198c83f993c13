"""Numbers of a report of failures in addition to counts over time. Pure."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, get_args

from api.index.reading.query_dsl import (
    combine,
    match_cluster,
    match_term,
    match_terms,
    match_time_range,
    match_tried_since,
)
from api.index.waiting.waiting_groups import LAYERS_OF_WAITS, parse_layers
from schemas.answers.diagnosis import Layer
from schemas.answers.reports import (
    CauseWaited,
    FindingsReported,
    Fragmentation,
    LayerWaited,
    NamespaceUsage,
    Percentiles,
    Waited,
)
from schemas.answers.waiting import LayerWaiting
from schemas.codec.records import format_rfc3339
from schemas.documents.pod_states import WAITING
from schemas.events import NodeStateChanged, PodWait
from schemas.indices import LAYERS
from schemas.json_types import Json

_PERCENTS: Final = (50, 90, 99)
_MAX_CAUSES: Final = 50
_MAX_OBSTACLES: Final = 1_000
"""More than the catalogue has."""
_MAX_NAMESPACES: Final = 1_000
_MAX_REQUESTS: Final = 1_000
"""Maximum number of different requests, with their obstacles, among which the smallest is found."""
_WAITED: Final = """
if (doc['placement_seconds'].size() == 0) { return 0; }
return doc['placement_seconds'].value * doc['devices'].size();
"""

_HELD: Final = """
double since = Math.max(doc['@timestamp'].value.toInstant().toEpochMilli(), params.since);
double until = params.until;
if (doc['ended_at'].size() > 0) { until = Math.min(until, doc['ended_at'].value.toInstant().toEpochMilli()); }
return Math.max(0, until - since) / 1000 * doc['devices'].size();
"""


def build_waiting_query(cluster: str, namespace: str | None, since: str) -> Json:
    """Build the search for waiting pods by main obstacle: devices, and devices times the time of the first attempt; and
    one pod of each request."""
    sums = {"devices": {"sum": {"field": "asked_devices"}}, "began": {"sum": {"field": "asked_devices_seconds"}}}
    causes = {"terms": {"field": "obstacle", "missing": "", "size": _MAX_CAUSES}, "aggs": sums}
    namespaces = {"terms": {"field": "namespace", "size": _MAX_NAMESPACES}, "aggs": sums}
    requests = {
        "terms": {"field": "obstacle_group", "size": _MAX_REQUESTS},
        "aggs": {"example": {"top_hits": {"size": 1, "_source": ["wait"]}}},
    }
    clauses = [match_cluster(cluster), match_term("state", WAITING), *match_terms({"namespace": namespace})]
    return {
        "query": combine([*clauses, match_tried_since(since)]),
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            "causes": causes, "namespaces": namespaces, "layers": LAYERS_OF_WAITS, "requests": requests, **sums
        },
    }  # fmt: skip


def _count_waiting_hours(sums: Mapping[str, Any], at_seconds: float) -> float:
    seconds: float = sums["devices"]["value"] * at_seconds - sums["began"]["value"]
    return round(max(seconds, 0) / 3600, 3)


def parse_waiting(answer: Json, at_seconds: float) -> Waited:
    aggregations = answer.get("aggregations", {})
    causes = [
        CauseWaited(cause=bucket["key"], pods=bucket["doc_count"], gpu_hours=_count_waiting_hours(bucket, at_seconds))
        for bucket in aggregations.get("causes", {}).get("buckets", [])
    ]
    total = answer["hits"]["total"]["value"]
    return Waited(
        pods=total,
        gpu_hours=_count_waiting_hours(aggregations, at_seconds) if total else 0.0,
        causes=_sort_largest_first(causes),
    )


def find_smallest_request(answer: Json) -> int | None:
    """Find the least memory of one device that a waiting pod of ``build_waiting_query`` requests."""
    buckets = answer.get("aggregations", {}).get("requests", {}).get("buckets", [])
    sources = [bucket["example"]["hits"]["hits"][0]["_source"] for bucket in buckets]
    waits = [PodWait.model_validate(source["wait"]) for source in sources if source.get("wait")]
    return min((wait.asked.memory_mib for wait in waits if wait.asked and wait.asked.memory_mib), default=None)


def build_placed_query(cluster: str, namespace: str | None, since: str, until: str) -> Json:
    """Build the search for pods placed in the range: the times of their waits, and the obstacle of each."""
    waited = {"waited": sum_waited()}
    percentiles = {
        name: {
            "filter": {"exists": {"field": field}},
            "aggs": {"seconds": {"percentiles": {"field": field, "percents": list(_PERCENTS)}}},
        }
        for name, field in (("placement", "placement_seconds"), ("start", "start_seconds"))
    }
    # Each placement is in one bucket, so that the hours of all buckets are those of the range.
    causes = {"terms": {"field": "obstacle", "missing": "", "size": _MAX_OBSTACLES}, "aggs": waited}
    namespaces = {"terms": {"field": "namespace", "size": _MAX_NAMESPACES}, "aggs": waited}
    layers = {name_layer_sum(layer): sum_layer(layer) for layer in LAYERS}
    clauses = [
        match_cluster(cluster),
        *match_terms({"namespace": namespace}),
        *match_time_range("@timestamp", since, until),
    ]
    return {
        "query": combine(clauses),
        "size": 0,
        "track_total_hits": True,
        "aggs": {"causes": causes, "namespaces": namespaces, **waited, **percentiles, **layers},
    }


def sum_waited() -> Json:
    """Build the sum of devices times seconds that placed pods had waited."""
    return {"sum": {"script": {"source": _WAITED, "lang": "painless"}}}


def name_layer_sum(layer: str) -> str:
    """Name the aggregation of a layer; other aggregations are called as a layer is."""
    return f"{layer}_wait"


def sum_layer(layer: str, **more: Json) -> Json:
    """Build the aggregation of the placements that waited in a layer: their number, and their seconds there."""
    field = f"{layer}_wait_seconds"
    return {"filter": {"exists": {"field": field}}, "aggs": {"total": {"sum": {"field": field}}, **more}}


def parse_layer_waits(placed: Json, waiting: Json, moment: datetime) -> list[LayerWaited]:
    """Parse the answers to both searches into a row for each layer in which a pod waited or waits."""
    sums = placed.get("aggregations", {})
    now = parse_layers(waiting.get("aggregations", {}).get("layers", {}), moment)
    no_pods = LayerWaiting(pods=0, waited_seconds=0)
    rows = [
        LayerWaited(
            layer=layer,
            placed_pods=sums.get(name_layer_sum(layer), {}).get("doc_count", 0),
            placed_seconds=round(sums.get(name_layer_sum(layer), {}).get("total", {}).get("value") or 0, 3),
            waiting_pods=now.get(layer, no_pods).pods,
            waiting_seconds=now.get(layer, no_pods).waited_seconds,
        )
        for layer in get_args(Layer)
    ]
    return [row for row in rows if row.placed_pods or row.waiting_pods]


def parse_placed(answer: Json) -> Waited:
    aggregations = answer.get("aggregations", {})
    causes = [
        CauseWaited(cause=bucket["key"], pods=bucket["doc_count"], gpu_hours=round(bucket["waited"]["value"] / 3600, 3))
        for bucket in aggregations.get("causes", {}).get("buckets", [])
        # Most pods without an obstacle are placed at their first attempt, and have waited for nothing.
        if bucket["key"] or bucket["waited"]["value"]
    ]
    hours = round(aggregations.get("waited", {}).get("value", 0) / 3600, 3)
    return Waited(pods=answer["hits"]["total"]["value"], gpu_hours=hours, causes=_sort_largest_first(causes))


def sum_held(since: datetime, until: datetime) -> Json:
    """Build the sum of devices times seconds that placements have within the range."""
    params = {"since": int(since.timestamp() * 1000), "until": int(until.timestamp() * 1000)}
    return {"sum": {"script": {"source": _HELD, "lang": "painless", "params": params}}}


def match_overlap(since: datetime, until: datetime) -> list[Json]:
    """Build clauses for placements that overlap the range."""
    return [
        {"range": {"@timestamp": {"lt": format_rfc3339(until)}}},
        # A placement that has not ended has no ``ended_at``, which no range would match.
        {"bool": {"must_not": [{"range": {"ended_at": {"lte": format_rfc3339(since)}}}]}},
    ]


def build_held_query(cluster: str, namespace: str | None, since: datetime, until: datetime) -> Json:
    """Build the search for placements that overlap the range: by namespace, devices times seconds within it, and the
    devices that are held at its end."""
    ends = {"range": {"ended_at": {"lte": format_rfc3339(until)}}}
    sums = {
        "held": sum_held(since, until),
        "present": {
            "filter": {"bool": {"must_not": [ends]}},
            "aggs": {"devices": {"value_count": {"field": "devices"}}},
        },
    }
    clauses = [
        match_cluster(cluster),
        *match_terms({"namespace": namespace}),
        *match_overlap(since, until),
        {"exists": {"field": "devices"}},
    ]
    by_namespace = {"terms": {"field": "namespace", "size": _MAX_NAMESPACES}, "aggs": sums}
    return {"query": combine(clauses), "size": 0, "track_total_hits": False, "aggs": {"namespaces": by_namespace}}


def parse_usage(held: Json, waiting: Json, placed: Json, at_seconds: float) -> list[NamespaceUsage]:
    """Parse the answers of the three searches into a row for each namespace that one of them has."""
    held_by, waiting_by, placed_by = (_list_namespaces(answer) for answer in (held, waiting, placed))
    rows = [
        NamespaceUsage(
            namespace=name,
            devices=holding["present"]["devices"]["value"] if (holding := held_by.get(name)) else 0,
            held_gpu_hours=round(holding["held"]["value"] / 3600, 3) if holding else 0.0,
            waiting_pods=waits["doc_count"] if (waits := waiting_by.get(name)) else 0,
            waiting_gpu_hours=_count_waiting_hours(waits, at_seconds) if waits else 0.0,
            placed_gpu_hours=round(placed_by[name]["waited"]["value"] / 3600, 3) if name in placed_by else 0.0,
        )
        for name in held_by.keys() | waiting_by.keys() | placed_by.keys()
    ]
    return sorted(rows, key=lambda row: (-row.held_gpu_hours, -row.waiting_gpu_hours, row.namespace))


def _list_namespaces(answer: Json) -> dict[str, Any]:
    buckets = answer.get("aggregations", {}).get("namespaces", {}).get("buckets", [])
    return {bucket["key"]: bucket for bucket in buckets}


def parse_percentiles(answer: Json, name: str) -> Percentiles:
    """Parse the percentiles ``name``: placement or start."""
    aggregation = answer.get("aggregations", {}).get(name, {"doc_count": 0})
    values = aggregation.get("seconds", {}).get("values", {})
    p50, p90, p99 = (values.get(f"{percent}.0") if aggregation["doc_count"] else None for percent in _PERCENTS)
    return Percentiles(pods=aggregation["doc_count"], p50_seconds=p50, p90_seconds=p90, p99_seconds=p99)


def _sort_largest_first(causes: Iterable[CauseWaited]) -> list[CauseWaited]:
    return sorted(causes, key=lambda cause: (-cause.gpu_hours, -cause.pods, cause.cause))


def build_findings_query(cluster: str, namespace: str | None, since: str, until: str) -> Json:
    clauses = [
        match_cluster(cluster),
        *match_terms({"namespace": namespace}),
        *match_time_range("found_at", since, until),
    ]
    by_finding = {"findings": {"terms": {"field": "finding", "size": _MAX_CAUSES}}}
    return {"query": combine(clauses), "size": 0, "track_total_hits": False, "aggs": by_finding}


def parse_findings(answer: Json) -> list[FindingsReported]:
    buckets = answer.get("aggregations", {}).get("findings", {}).get("buckets", [])
    return [FindingsReported(finding=bucket["key"], count=bucket["doc_count"]) for bucket in buckets]


def measure_fragmentation(
    states: Iterable[NodeStateChanged], smallest: int | None, cordoned: Collection[str] = ()
) -> Fragmentation:
    """Count free memory of devices that pods can get: registered with their memory, healthy and not cordoned.

    ``cordoned``: nodes that take no further pods.
    """
    nodes = devices = idle = free = shared = small = 0
    for state in states:
        nodes += 1
        if state.node in cordoned:
            continue
        for position, code in enumerate(state.kind.tolist()):
            total, used = state.kinds[code].memory_mib, int(state.memory_used_mib[position])
            # -1: the source does not report what is in use.
            if total is None or used < 0 or not state.healthy[position] or state.cordoned[position]:
                continue
            left = max(total - used, 0)
            is_idle = used == 0 and state.slots_used[position] <= 0
            devices, idle, free = devices + 1, idle + is_idle, free + left
            shared += 0 if is_idle else left
            small += left if smallest is not None and left < smallest else 0
    return Fragmentation(
        nodes=nodes,
        devices=devices,
        free_devices=idle,
        free_memory_mib=free,
        free_memory_on_shared_mib=shared,
        smallest_asked_mib=smallest,
        too_small_mib=None if smallest is None else small,
    )

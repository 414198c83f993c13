"""Pods that wait now by workload, or by obstacle: a page of groups from one search."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from api.http.pagination import Position
from api.http.param_types import MomentText
from api.index.waiting.waiting_pods import FIELDS, LONGEST_WAIT, build_device_milliseconds_script
from schemas.answers.diagnosis import Layer
from schemas.answers.waiting import LayerListed, LayerWaiting, ObstacleWaiting, PodWaiting, WorkloadWaiting
from schemas.json_types import Json

MAX_EXAMPLES: Final = 3
MAX_GROUPS: Final = 10_000
"""Maximum number of listed groups; the pods of the others count nevertheless."""
_MAX_REASONS: Final = 200
_EXACT: Final = 40_000
"""Number up to which OpenSearch counts distinct values exactly, and nearly so above."""
_REASONS: Final = {"terms": {"field": "reasons", "size": _MAX_REASONS}}
_BEGAN: Final = {"began": {"avg": {"field": "first_judged_at"}}}
LAYERS_OF_WAITS: Final[Json] = {"terms": {"field": "layer", "size": len(get_args(Layer))}, "aggs": _BEGAN}
_OBSTACLES: Final = {"terms": {"field": "obstacle", "size": _MAX_REASONS}}
_FIELD: Final = {"workload": "group", "obstacle": "obstacle_group", "layer": "layer"}
_UNKNOWN: Final = ""
"""Group of documents that are older than the field."""
GroupName = Literal["workload", "obstacle", "layer"]


class GroupsPosition(Position):
    """Beginning of a page of groups."""

    since: MomentText
    """Start in RFC 3339: the first page resolves a duration, and later pages keep its time."""
    at: MomentText
    """Time of the first page in RFC 3339, until which all pages count waits."""
    shown: Annotated[int, Field(ge=0, le=MAX_GROUPS)]
    """Number of groups on the pages before."""
    last: tuple[float, int, str]
    """Order of the last group on the page before, as ``rank_group`` returns it."""


def build_groups_query(query: Json, group_by: GroupName, order: str, moment: datetime, size: int) -> Json:
    """Build the search for the first ``size`` groups of waiting pods.

    ``order``: ``pods``, ``devices``, ``gpu_hours`` (most first) or ``wait`` (longest first).
    """
    field = _FIELD[group_by]
    aggregations: Json = {
        "first": {"min": {"field": "first_judged_at"}},
        "last": {"max": {"field": "@timestamp"}},
        "reasons": _REASONS,
        "obstacles": _OBSTACLES,
        "examples": {"top_hits": {"size": MAX_EXAMPLES, "sort": LONGEST_WAIT, "_source": FIELDS}},
        "devices": {"sum": {"field": "asked_devices"}},
        "devices_seconds": {"sum": {"field": "asked_devices_seconds"}},
    }
    if group_by != "workload":
        aggregations |= {"workloads": _count_distinct("group"), "namespaces": _count_distinct("namespace")}
    if group_by == "layer":
        aggregations |= _BEGAN
    if order == "gpu_hours":
        aggregations["waited"] = {"sum": {"script": build_device_milliseconds_script(moment)}}
    first: Json = {"pods": {"_count": "desc"}, "devices": {"devices": "desc"}, "gpu_hours": {"waited": "desc"}}
    groups = {
        "field": field,
        "missing": _UNKNOWN,
        "size": size,
        "order": [*([first[order]] if order in first else []), {"first": "asc"}, {"_key": "asc"}],
        # OpenSearch collects reasons and examples only for the groups of the page, not for thousands of others.
        "collect_mode": "breadth_first",
    }
    return {
        "query": query,
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            "groups": {"terms": groups, "aggs": aggregations},
            "total": {"cardinality": {"field": field, "missing": _UNKNOWN, "precision_threshold": _EXACT}},
            "reasons": _REASONS,
            "obstacles": _OBSTACLES,
            "layers": LAYERS_OF_WAITS,
        },
    }


def parse_layers(aggregation: Json, moment: datetime) -> dict[Layer, LayerWaiting]:
    """Parse the pods of each layer, and how long they have waited together."""
    return {
        bucket["key"]: LayerWaiting(pods=bucket["doc_count"], waited_seconds=_count_waited(bucket, moment))
        for bucket in aggregation.get("buckets", [])
    }


def _count_waited(bucket: Json, moment: datetime) -> int:
    """Count the seconds that the pods of a bucket have waited together, from the mean of their beginnings."""
    mean: float = (bucket["began"]["value"] or 0) / 1000
    pods: int = bucket["doc_count"]
    return max(round(pods * (moment.timestamp() - mean)), 0)


def _count_distinct(field: str) -> Json:
    return {"cardinality": {"field": field, "precision_threshold": 1000}}


def rank_group(bucket: Json, order: str) -> tuple[float, int, str]:
    """Rank a group, ascending in the order of the search; of equal groups the one that waits longest is first."""
    numbers = {"pods": bucket["doc_count"], "devices": bucket["devices"]["value"]}
    number = bucket["waited"]["value"] if order == "gpu_hours" else numbers.get(order, 0)
    return -float(number), int(bucket["first"]["value"]), bucket["key"]


def skip_groups(answer: Json, order: str, last: tuple[float, int, str] | None) -> list[Json]:
    """Skip the buckets of the answer to ``build_groups_query`` up to the last group of the page before."""
    buckets: list[Json] = answer.get("aggregations", {}).get("groups", {}).get("buckets", [])
    return [bucket for bucket in buckets if last is None or rank_group(bucket, order) > last]


def parse_reason_counts(aggregation: Json) -> dict[str, int]:
    """Parse reasons to their numbers of pods, the most frequent first."""
    return {bucket["key"]: bucket["doc_count"] for bucket in aggregation.get("buckets", [])}


def to_waiting_workload(bucket: Json, examples: Sequence[PodWaiting], moment: datetime) -> WorkloadWaiting:
    """Convert a bucket into a workload of the answer; ``examples`` are its pods that wait longest."""
    namespace, _, workload = bucket["key"].partition("/")
    return WorkloadWaiting(
        namespace=namespace,
        workload=workload,
        queue=next((pod.queue for pod in examples if pod.queue), ""),
        layer=examples[0].layer,
        obstacles=parse_reason_counts(bucket["obstacles"]),
        reasons=parse_reason_counts(bucket["reasons"]),
        **_describe_group(bucket, examples, moment),
    )


def to_waiting_obstacle(bucket: Json, examples: Sequence[PodWaiting], moment: datetime) -> ObstacleWaiting:
    """Convert a bucket into an obstacle of the answer; ``examples`` are its pods that wait longest."""
    return ObstacleWaiting(
        obstacle=examples[0].obstacle,
        layer=examples[0].layer,
        asked=bucket["key"].partition("|")[2],
        workloads=bucket["workloads"]["value"],
        namespaces=bucket["namespaces"]["value"],
        nearest=examples[0].nearest,
        **_describe_group(bucket, examples, moment),
    )


def to_waiting_layer(bucket: Json, examples: Sequence[PodWaiting], moment: datetime) -> LayerListed:
    """Convert a bucket into a layer of the answer; ``examples`` are its pods that wait longest."""
    return LayerListed(
        layer=bucket["key"] or None,
        waited_seconds=_count_waited(bucket, moment),
        workloads=bucket["workloads"]["value"],
        namespaces=bucket["namespaces"]["value"],
        obstacles=parse_reason_counts(bucket["obstacles"]),
        **_describe_group(bucket, examples, moment),
    )


def _describe_group(bucket: Json, examples: Sequence[PodWaiting], moment: datetime) -> dict[str, Any]:
    devices = int(bucket["devices"]["value"])
    # The sum over pods of devices x (moment - first), from the sums of devices and of devices x first.
    device_seconds = devices * moment.timestamp() - bucket["devices_seconds"]["value"]
    return {
        "pods": bucket["doc_count"],
        "devices": devices,
        "gpu_hours": round(max(device_seconds, 0) / 3600, 3),
        "first_judged_at": examples[0].first_judged_at,
        "last_judged_at": bucket["last"]["value_as_string"],
        "examples": list(examples),
    }

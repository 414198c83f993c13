"""Which pods wait now by workload, or by what keeps them out: a page of groups from one search."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from api.http.pagination import Position
from api.http.param_types import MomentText
from api.index.waiting.waiting_pods import FIELDS, LONGEST_WAIT, device_milliseconds
from schemas.answers.waiting import ObstacleWaiting, PodWaiting, WorkloadWaiting
from schemas.json_types import Json

MAX_EXAMPLES: Final = 3
MAX_GROUPS: Final = 10_000
"""A list of groups ends there; the pods of the others are counted nevertheless."""
_MAX_REASONS: Final = 200
_EXACT: Final = 40_000
"""OpenSearch counts distinct values exactly up to there, and nearly so above."""
_REASONS: Final = {"terms": {"field": "reasons", "size": _MAX_REASONS}}
_FIELD: Final = {"workload": "group", "obstacle": "obstacle_group"}
_UNKNOWN: Final = ""
"""The group of documents of before the field."""
GroupName = Literal["workload", "obstacle"]


class GroupsPosition(Position):
    """Where a page of groups begins."""

    since: MomentText
    """As of pods."""
    at: MomentText
    """As of pods."""
    shown: Annotated[int, Field(ge=0, le=MAX_GROUPS)]
    """How many groups the pages before have."""
    last: tuple[float, int, str]
    """``group_order`` of the last of them."""


def groups_query(query: Json, group_by: GroupName, order: str, at: datetime, size: int) -> Json:
    """The body of a search for the first ``size`` groups, with what is waiting.

    ``order``: ``pods``, ``devices``, ``gpu_hours`` (most first) or ``wait`` (longest first).
    """
    field = _FIELD[group_by]
    aggregations: Json = {
        "first": {"min": {"field": "first_judged_at"}},
        "last": {"max": {"field": "@timestamp"}},
        "reasons": _REASONS,
        "examples": {"top_hits": {"size": MAX_EXAMPLES, "sort": LONGEST_WAIT, "_source": FIELDS}},
        "devices": {"sum": {"field": "asked_devices"}},
        "devices_seconds": {"sum": {"field": "asked_devices_seconds"}},
    }
    if group_by == "obstacle":
        aggregations |= {"workloads": _distinct("group"), "namespaces": _distinct("namespace")}
    if order == "gpu_hours":
        aggregations["waited"] = {"sum": {"script": device_milliseconds(at)}}
    first: Json = {"pods": {"_count": "desc"}, "devices": {"devices": "desc"}, "gpu_hours": {"waited": "desc"}}
    groups = {
        "field": field,
        "missing": _UNKNOWN,
        "size": size,
        "order": [*([first[order]] if order in first else []), {"first": "asc"}, {"_key": "asc"}],
        # Reasons and examples are collected for the groups of the page alone, and not for thousands of others.
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
        },
    }


def _distinct(field: str) -> Json:
    return {"cardinality": {"field": field, "precision_threshold": 1000}}


def group_order(bucket: Json, order: str) -> tuple[float, int, str]:
    """Ascending in the order of the search; of equal groups the one that waits longest first."""
    numbers = {"pods": bucket["doc_count"], "devices": bucket["devices"]["value"]}
    number = bucket["waited"]["value"] if order == "gpu_hours" else numbers.get(order, 0)
    return -float(number), int(bucket["first"]["value"]), bucket["key"]


def groups_behind(answer: Json, order: str, last: tuple[float, int, str] | None) -> list[Json]:
    """The buckets of the answer to ``groups_query`` behind the last group of the page before."""
    buckets: list[Json] = answer.get("aggregations", {}).get("groups", {}).get("buckets", [])
    return [bucket for bucket in buckets if last is None or group_order(bucket, order) > last]


def reason_counts(aggregation: Json) -> dict[str, int]:
    """Reason to number of pods, the most frequent first."""
    return {bucket["key"]: bucket["doc_count"] for bucket in aggregation.get("buckets", [])}


def workload_waiting(bucket: Json, examples: Sequence[PodWaiting], at: datetime) -> WorkloadWaiting:
    """A bucket as an item; ``examples`` are its pods that wait longest."""
    namespace, _, workload = bucket["key"].partition("/")
    return WorkloadWaiting(
        namespace=namespace,
        workload=workload,
        queue=next((pod.queue for pod in examples if pod.queue), ""),
        reasons=reason_counts(bucket["reasons"]),
        **_of_group(bucket, examples, at),
    )


def obstacle_waiting(bucket: Json, examples: Sequence[PodWaiting], at: datetime) -> ObstacleWaiting:
    """As ``workload_waiting``."""
    return ObstacleWaiting(
        obstacle=examples[0].obstacle,
        asked=bucket["key"].partition("|")[2],
        workloads=bucket["workloads"]["value"],
        namespaces=bucket["namespaces"]["value"],
        nearest=examples[0].nearest,
        **_of_group(bucket, examples, at),
    )


def _of_group(bucket: Json, examples: Sequence[PodWaiting], at: datetime) -> dict[str, Any]:
    devices = int(bucket["devices"]["value"])
    # The sum over pods of devices x (at - first), from the sums of devices and of devices x first.
    device_seconds = devices * at.timestamp() - bucket["devices_seconds"]["value"]
    return {
        "pods": bucket["doc_count"],
        "devices": devices,
        "gpu_hours": round(max(device_seconds, 0) / 3600, 3),
        "first_judged_at": examples[0].first_judged_at,
        "last_judged_at": bucket["last"]["value_as_string"],
        "examples": list(examples),
    }

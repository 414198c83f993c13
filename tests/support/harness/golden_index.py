"""An index that holds what the golden records say, and answers each of the API's searches with all that fit it."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import orjson

from engine.diagnosis.waiting import derive_wait
from schemas.codec.records import decode, encode_value
from schemas.documents.attempts import build_attempt_document, build_finding_document
from schemas.documents.devices import build_devices_document, build_node_state_document
from schemas.documents.observations import OBSERVATION_KINDS, build_observation_document
from schemas.documents.placements import build_placement_document
from schemas.documents.pod_states import derive_state_after_attempt
from schemas.events import (
    AlertChanged,
    AttemptSummarized,
    DeviceAllocation,
    DevicesJudged,
    Event,
    FindingReported,
    NodeStateChanged,
    PodObserved,
)
from schemas.json_types import Json
from schemas.placements import PodPlacement

GOLDEN = Path(__file__).parents[2] / "contract" / "golden"


@cache
def read_golden(kind: type[Event], number: str) -> tuple[Event, bytes]:
    """Read the event of a golden record, and the record's own bytes."""
    path = GOLDEN / kind.TYPE / f"{number}.json"
    headers = orjson.loads(path.with_suffix(".headers.json").read_bytes())
    event = decode(path.read_bytes(), [(name, value.encode()) for name, value in headers.items() if name != "key"])
    assert isinstance(event, kind), str(event)
    return event, path.read_bytes()


def read_attempt(number: str = "009") -> AttemptSummarized:
    event, _ = read_golden(AttemptSummarized, number)
    assert isinstance(event, AttemptSummarized)
    return event


def read_alert(number: str = "001") -> AlertChanged:
    event, _ = read_golden(AlertChanged, number)
    assert isinstance(event, AlertChanged)
    return event


def build_hit(source: Any, name: str) -> Json:
    """Build a hit as a search returns it."""
    source = orjson.loads(encode_value(source))
    return {"_index": "schedulerlog", "_id": name, "_source": source, "sort": [1, name]}


def _list_observations(body: Json) -> Iterator[Json]:
    wanted = str(body.get("query"))
    for name, kind in OBSERVATION_KINDS.items():
        if name in wanted:
            event: Any = read_golden(kind, "003" if kind is PodObserved else "001")[0]
            if kind is PodObserved and event.pod.name not in re.findall(r"[-a-z0-9]+", wanted):
                continue
            yield build_hit(build_observation_document(event, "0"), event.id)


def _build_placement() -> Json:
    summary = read_attempt()
    assert summary.bind
    placement = PodPlacement(
        id=summary.attempt_id,
        cluster=summary.cluster,
        pod=summary.pod,
        node="node3",
        started_at=summary.bind.ended_at,
        bound_at=summary.bind.ended_at,
        scheduler=summary.scheduler,
        attempt_id=summary.attempt_id,
        description=summary.description,
        first_judged_at=summary.started_at,
        judged_at=summary.ended_at,
        phase="Running",
        allocations=[
            DeviceAllocation(uuid=uuid, container="deepseek", memory_mib=20480, cores_percent=20, slots=1)
            for uuid in summary.picked_devices
        ],
    )
    return build_hit(build_placement_document(placement, {}), placement.id)


def _list_hits(alias: str, body: Json) -> list[Json]:
    summary = read_attempt()
    match alias:
        case "schedulerlog-observations":
            return list(_list_observations(body))
        case "schedulerlog-occupancy":
            return [_build_placement()]
        case "schedulerlog-findings":
            finding: Any = read_golden(FindingReported, "002")[0]
            return [build_hit(build_finding_document(finding), finding.id)]
        case "schedulerlog-devices":
            devices: Any
            devices, value = read_golden(DevicesJudged, "005")
            return [build_hit(build_devices_document(devices, value), devices.id)]
        case "schedulerlog-node-states":
            state: Any
            state, value = read_golden(NodeStateChanged, "009")
            return [build_hit(build_node_state_document(state, state.observed_at, value), state.id)]
        case "schedulerlog-pod-states":
            return [
                build_hit(
                    derive_state_after_attempt(summary.model_copy(update={"wait": derive_wait(summary)})).fields, "pod"
                )
            ]
    return [build_hit(build_attempt_document(summary, ""), summary.attempt_id)]


def _aggregate(body: Json, hits: list[Json]) -> Json:
    """Count for each search that counts, with one bucket for all hits."""
    times = {"value": 1776824142349.0, "value_as_string": "2026-04-22T02:15:42.349Z"}
    everything = {"hits": {"total": {"value": len(hits)}, "hits": hits}}
    reasons = {"buckets": [{"key": "CardInsufficientMemory", "doc_count": 1}]}
    kinds: Json = {"buckets": []}
    for hit in hits:
        bucket = {"key": "", "latest": {"hits": {"hits": [hit]}}}
        kinds["buckets"].append({"key": hit["_source"].get("kind", ""), "schedulers": {"buckets": [bucket]}})
    group = {"key": "llm/Deployment/deepseek", "doc_count": 1, "first": times, "last": times}
    group |= {"reasons": reasons, "obstacles": reasons}
    group |= {name: {"value": 1} for name in ("workloads", "namespaces")}
    group |= {"devices": {"value": 2.0}, "devices_seconds": {"value": 2 * 1776824142.349712}, "waited": {"value": 1.0}}
    if '"field": "layer"' in json.dumps(body.get("aggs", {}).get("groups")):
        group |= {"key": "nodes", "began": times}
    node: Json = {"kinds": kinds, "latest": everything}
    node["key"] = {"node": "node3"} if "composite" in str(body) else "node3"
    if "node_reasons" in str(body.get("aggs")):
        node = {"key": "node3|CardInsufficientMemory", "doc_count": 1, "pods": {"value": 1}, "last": times}
    # The hour of the golden attempt: of more than a week ago there are no shorter buckets.
    over_time = {"buckets": [{"key": 1776823200000, "total": {"value": 1.0}}]}
    waited = {"devices": {"value": 2.0}, "began": {"value": 2 * 1776824142.349712}, "waited": {"value": 7200.0}}
    one_second = {"doc_count": 1, "seconds": {"values": {"50.0": 1.0, "90.0": 1.0, "99.0": 1.0}}}
    fields_of_waiting: Json = waited | {
        "causes": {"buckets": [waited | {"key": "CardInsufficientMemory", "doc_count": 1}]},
        "placement": one_second,
        "start": one_second,
        "findings": {"buckets": [{"key": "Overcommitted", "doc_count": 1}]},
        "layers": {"buckets": [{"key": "nodes", "doc_count": 1, "began": times}]},
        "nodes_wait": {"doc_count": 1, "total": {"value": 1.0}, "times": over_time},
        "times": over_time,
        "series": {"buckets": [{"key": "CardInsufficientMemory", "total": {"value": 1.0}, "times": over_time}]},
        "kinds": kinds,
        "reasons": reasons,
        "obstacles": reasons,
        "first": times,
        "total": {"value": 1},
        "workloads": {"value": 1, "buckets": []},
        "groups": {"buckets": [group | {"examples": everything}]},
        "requests": {"buckets": [group | {"key": [group["key"], ""], "example": everything}]},
        "nodes": {"buckets": [node]},
        "clusters": {"buckets": [{"key": "default", "first": times, "last": times}]},
    }
    return _select(body.get("aggs", {}), fields_of_waiting)


def _select(aggregations: Json, values: Json) -> Json:
    """Select the values of the aggregations that are asked for, also below a filter of its own name."""
    below = {
        name: _select(aggregations[name].get("aggs", {}), values)
        for name in ("counted", "unplaced")
        if name in aggregations
    }
    return below | {name: values[name] for name in aggregations if name in values}


def _narrow(hit: Json, fields: list[str] | Json) -> Json:
    """Narrow the hit to the requested fields of its source; an object of ``fields`` only excludes."""
    if isinstance(fields, list):
        names = {field.partition(".")[0] for field in fields}
        return hit | {"_source": {name: value for name, value in hit["_source"].items() if name in names}}
    excluded = set(fields.get("excludes", ()))
    return hit | {"_source": {name: _without(value, name, excluded) for name, value in hit["_source"].items()}}


def _without(value: Any, path: str, excluded: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if f"{path}.{name}" not in excluded}


def answer_search(request: httpx.Request) -> httpx.Response:
    """Answer as an index that holds the golden records."""
    # One index of a day (schedulerlog-devices-2026.04.22), or the alias of all.
    body = orjson.loads(request.content) if request.content.startswith(b"{") else {}
    wanted = body.get("docs", [])
    index = wanted[0]["_index"] if wanted else request.url.path.split("/")[1]
    hits = _list_hits(re.split(r"-?[0-9*,]", index)[0], body)
    by_id = {hit["_id"]: hit for hit in hits}
    documents = [by_id.get(document["_id"], document) | {"found": document["_id"] in by_id} for document in wanted]
    hits = [hit | {"fields": {name: [value] for name, value in hit["_source"].items()}} for hit in hits]
    if isinstance(fields := body.get("_source"), list | dict):
        hits = [_narrow(hit, fields) for hit in hits]
    answer: Json = {"hits": {"total": {"value": len(hits)}, "hits": hits}}
    if counted := _aggregate(body, hits):
        answer["aggregations"] = counted
    return httpx.Response(200, json=answer | {"docs": documents})

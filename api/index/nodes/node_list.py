"""The list of nodes: registration, checks, lock, and how much of their devices' memory is free. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.index.nodes.node_occupancy import is_usable, node_occupancy
from api.index.observations import (
    NODE_KINDS,
    is_cordoned,
    latest_by_scheduler,
    latest_observations,
    latest_status,
    registered_devices,
)
from api.index.reading.query_dsl import all_of, of_cluster, sort_latest_first, term, time_range
from schemas.answers.nodes import NodeListed, NodeLock, RegistrationListed
from schemas.answers.placements import DeviceOccupancy, NodeOccupancy
from schemas.codec.records import format_rfc3339
from schemas.documents.observations import Observed
from schemas.events import BindOutcome, NodeChecked, NodeObserved, NodeRegistered
from schemas.indices import NOT_ENDED
from schemas.json_types import Json
from schemas.placements import PodPlacement

MAX_PLACEMENTS: Final = 10_000
"""The placements of all nodes of a page: OpenSearch returns no more hits."""
_MAX_NODES: Final = 40_000
"""Up to so many nodes, OpenSearch counts them almost exactly."""


class NodesPosition(Position):
    """Where a page of nodes begins: behind the node ``after``."""

    after: str


@dataclass(frozen=True, slots=True)
class NodeRecords:
    """What is recorded of one node."""

    observed: Sequence[Observed]
    placements: Sequence[PodPlacement]
    lock: NodeLock | None


def nodes_query(cluster: str, after: str | None, limit: int) -> Json:
    """The body of a search for the latest observations of ``limit`` nodes behind ``after``, by name, and one more."""
    composite: Json = {"size": limit + 1, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    return {
        "query": all_of([of_cluster(cluster), {"terms": {"kind": list(NODE_KINDS)}}]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            "nodes": {"composite": composite, "aggs": {"kinds": latest_by_scheduler(1)}},
            "total": {"cardinality": {"field": "node", "precision_threshold": _MAX_NODES}},
        },
    }


def nodes_of(answer: Json, now: datetime) -> dict[str, list[Observed]]:
    """Node to its latest observations, by name, in the answer to ``nodes_query``. Raises ``UnreadableError``."""
    buckets = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    return {bucket["key"]["node"]: latest_observations({"aggregations": bucket}, now) for bucket in buckets}


def total_of(answer: Json) -> int:
    return int(answer.get("aggregations", {}).get("total", {}).get("value", 0))


def placements_query(cluster: str, nodes: Sequence[str]) -> Json:
    """The body of a search for the placements on ``nodes`` that last."""
    return {
        "query": all_of([of_cluster(cluster), {"terms": {"node": list(nodes)}}, NOT_ENDED]),
        "size": MAX_PLACEMENTS,
        "_source": {"excludes": ["known", "text"]},
        "track_total_hits": False,
    }


def locks_query(cluster: str, nodes: Sequence[str], since: str) -> Json:
    """The body of a search for the latest failed bind on each of ``nodes`` since then."""
    clauses = [of_cluster(cluster), {"terms": {"chosen": list(nodes)}}, term("bound", "false")]
    latest = {"size": 1, "sort": [sort_latest_first("@timestamp")], "_source": ["summary.bind"]}
    by_node = {"terms": {"field": "chosen", "size": len(nodes)}, "aggs": {"latest": {"top_hits": latest}}}
    return {
        "query": all_of([*clauses, *time_range("@timestamp", since, None)]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": by_node},
    }


def locks_of(answer: Json) -> dict[str, NodeLock]:
    """Node to the lock that the latest failed bind on it reports, in the answer to ``locks_query``."""
    locks = {}
    for bucket in answer.get("aggregations", {}).get("nodes", {}).get("buckets", []):
        for hit in bucket["latest"]["hits"]["hits"]:
            bind = BindOutcome.model_validate((hit["_source"].get("summary") or {}).get("bind"))
            if holder := bind.lock_holder:
                locked_at = format_rfc3339(holder.locked_at) if holder.locked_at else None
                locks[bucket["key"]] = NodeLock(
                    pod=holder.pod, locked_at=locked_at, seen_at=format_rfc3339(bind.ended_at)
                )
    return locks


def node_listed(cluster: Cluster, node: str, records: NodeRecords, now: datetime) -> NodeListed:
    """One node of the list."""
    registrations = [event for event in records.observed if isinstance(event, NodeRegistered)]
    devices = [row for event in registrations for row in registered_devices(event)]
    status = latest_status(records.observed)
    cordoned = is_cordoned(status)
    occupancy = node_occupancy(cluster, node, now, records.placements, devices, cordoned=cordoned)
    return NodeListed(
        node=node,
        registrations=[
            RegistrationListed(
                reported_by=event.scheduler or "cluster",
                observed_at=format_rfc3339(event.observed_at),
                registered=event.registered,
                cause=event.cause,
                handshake=event.handshake,
                devices=len(event.uuid),
            )
            for event in registrations
        ],
        problems=[
            problem for event in records.observed if isinstance(event, NodeChecked) for problem in event.problems
        ],
        ready=_ready(status),
        cordoned=cordoned,
        lock=records.lock,
        pods=len(records.placements),
        **_free(occupancy),
        path=cluster.link_node(node),
        occupancy=f"{cluster.link_node(node)}/occupancy",
    )


def _ready(status: NodeObserved | None) -> str | None:
    conditions = status.conditions if status else []
    return next((condition.status for condition in conditions if condition.type == "Ready"), None)


def _free(occupancy: NodeOccupancy) -> Mapping[str, Any]:
    """The numbers about free devices and memory; None where an amount behind them is not known."""
    devices = occupancy.devices
    usable = [] if occupancy.cordoned else [device for device in devices if is_usable(device)]
    free = [free_memory_mib(device) for device in usable]
    known = [amount for amount in free if amount is not None]
    is_known = bool(devices) and len(known) == len(free)
    total = sum(known)
    in_pieces = sum(amount or 0 for device, amount in zip(usable, free, strict=True) if device.held_by)
    return {
        "devices": len(devices),
        "unhealthy_devices": sum(device.healthy is False for device in devices),
        "cordoned_devices": sum(device.cordoned is True for device in devices),
        "free_devices": occupancy.free_devices,
        "memory_free_mib": total if is_known else None,
        "largest_free_mib": max(known, default=0) if is_known else None,
        "fragmentation": (round(in_pieces / total, 3) if total else 0.0) if is_known else None,
    }


def free_memory_mib(device: DeviceOccupancy) -> int | None:
    """What is free of a device; None where its total or an amount held is not known, 0 where more is held."""
    if device.memory_total_mib is None or device.memory_held_mib is None:
        return None
    return max(device.memory_total_mib - device.memory_held_mib, 0)

"""List of nodes: registration, checks, lock, and the free memory of their devices. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.index.nodes.node_occupancy import count_free_devices, describe_devices, is_usable, list_current
from api.index.nodes.occupancy_queries import decode_placement
from api.index.observations import (
    NODE_KINDS,
    aggregate_latest_by_scheduler,
    find_latest_status,
    is_cordoned,
    iterate_registered_devices,
    parse_latest_observations,
)
from api.index.reading.query_dsl import combine, match_cluster, match_term, match_time_range, sort_latest_first
from engine.capacity.fleet import add_devices
from engine.summaries.node_pools import find_pool
from engine.summaries.trends import PoolOf
from schemas.answers.nodes import NodeListed, NodeLock, RegistrationListed
from schemas.answers.placements import DeviceOccupancy
from schemas.codec.records import format_rfc3339
from schemas.documents.observations import Observed
from schemas.events import BindOutcome, NodeChecked, NodeObserved, NodeRegistered
from schemas.indices import NOT_ENDED
from schemas.json_types import Json
from schemas.placements import PodPlacement

MAX_PLACEMENTS: Final = 10_000
"""Maximum number of placements on all nodes of a page: OpenSearch returns no more hits."""
_PLACED: Final = ("cluster", "namespace", "pod", "pod_uid", "node", "@timestamp", "allocations")
"""Fields of a placement that the sums of its node are made of."""
_MAX_NODES: Final = 40_000
"""Number of nodes up to which OpenSearch counts them almost exactly."""


class NodesPosition(Position):
    """Beginning of a page of nodes: after the node ``after``."""

    after: str


@dataclass(frozen=True, slots=True)
class NodeRecords:
    """Records of one node."""

    observed: Sequence[Observed]
    placements: Sequence[PodPlacement]
    lock: NodeLock | None


def build_names_query(cluster: str) -> Json:
    """Build the search for the names of all nodes."""
    return {
        "query": combine([match_cluster(cluster), {"terms": {"kind": list(NODE_KINDS)}}]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"names": {"terms": {"field": "node", "size": _MAX_NODES}}},
    }


def parse_names(answer: Json) -> list[str]:
    """Parse the answer to ``build_names_query``, in the order of the list."""
    return sorted(bucket["key"] for bucket in answer.get("aggregations", {}).get("names", {}).get("buckets", []))


def build_nodes_query(cluster: str, after: str | None, limit: int, names: Sequence[str] | None = None) -> Json:
    """Build the search for the latest observations of ``limit`` nodes after ``after``, by name, and one more.

    names: nodes to select from; None for all.
    """
    selected: list[Json] = [] if names is None else [{"terms": {"node": list(names)}}]
    composite: Json = {"size": limit + 1, "sources": [{"node": {"terms": {"field": "node"}}}]}
    if after is not None:
        composite["after"] = {"node": after}
    return {
        "query": combine([match_cluster(cluster), {"terms": {"kind": list(NODE_KINDS)}}, *selected]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {
            "nodes": {"composite": composite, "aggs": {"kinds": aggregate_latest_by_scheduler(1)}},
            "total": {"cardinality": {"field": "node", "precision_threshold": _MAX_NODES}},
        },
    }


def parse_nodes(answer: Json, now: datetime) -> dict[str, list[Observed]]:
    """Parse the answer to ``build_nodes_query``: node to its latest observations. Raises ``UnreadableError``."""
    buckets = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    return {bucket["key"]["node"]: parse_latest_observations({"aggregations": bucket}, now) for bucket in buckets}


def parse_total(answer: Json) -> int:
    return int(answer.get("aggregations", {}).get("total", {}).get("value", 0))


def build_placements_query(cluster: str, nodes: Sequence[str]) -> Json:
    """Build the search for the present placements on ``nodes``, as whole documents.

    For a part of a document OpenSearch parses all of it and writes the part, which takes longer than to send the whole.
    """
    return {
        "query": combine([match_cluster(cluster), {"terms": {"node": list(nodes)}}, NOT_ENDED]),
        "size": MAX_PLACEMENTS,
        "track_total_hits": False,
    }


def parse_placements(answer: Json) -> dict[str, list[PodPlacement]]:
    """Parse the answer to ``build_placements_query``: node to what its sums are made of. Raises ``UnreadableError``."""
    placements: dict[str, list[PodPlacement]] = {}
    for hit in answer["hits"]["hits"]:
        source = {name: hit["_source"].get(name) for name in _PLACED}
        placement = decode_placement({"_id": hit["_id"], "_source": source})
        placements.setdefault(placement.node, []).append(placement)
    return placements


def build_locks_query(cluster: str, nodes: Sequence[str], since: str) -> Json:
    """Build the search for the latest failed bind on each of ``nodes`` after ``since``."""
    clauses = [match_cluster(cluster), {"terms": {"chosen": list(nodes)}}, match_term("bound", "false")]
    latest = {"size": 1, "sort": [sort_latest_first("@timestamp")], "_source": ["summary.bind"]}
    by_node = {"terms": {"field": "chosen", "size": len(nodes)}, "aggs": {"latest": {"top_hits": latest}}}
    return {
        "query": combine([*clauses, *match_time_range("@timestamp", since, None)]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"nodes": by_node},
    }


def parse_locks(answer: Json) -> dict[str, NodeLock]:
    """Parse the answer to ``build_locks_query``: node to the lock that its latest failed bind reports."""
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


def to_listed_node(
    cluster: Cluster, node: str, records: NodeRecords, now: datetime, pool_of: PoolOf | None = None
) -> NodeListed:
    """Convert the records of a node into an item of the list. pool_of: pools by the names of nodes."""
    registrations = [event for event in records.observed if isinstance(event, NodeRegistered)]
    registered = [row for event in registrations for row in iterate_registered_devices(event)]
    status = find_latest_status(records.observed)
    cordoned = is_cordoned(status)
    devices = describe_devices(list_current(records.placements, now), registered)
    pool, source = find_pool(node, pool_of)
    return NodeListed(
        node=node,
        pool=pool,
        pool_source=source,
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
        ready=_find_ready(status),
        cordoned=cordoned,
        lock=records.lock,
        pods=len(records.placements),
        **_count_free(devices, is_closed=bool(cordoned)),
        **add_devices(devices, is_closed=bool(cordoned))._asdict(),
        path=cluster.link_node(node),
        occupancy=f"{cluster.link_node(node)}/occupancy",
    )


def _find_ready(status: NodeObserved | None) -> str | None:
    conditions = status.conditions if status else []
    return next((condition.status for condition in conditions if condition.type == "Ready"), None)


def _count_free(devices: Sequence[DeviceOccupancy], *, is_closed: bool) -> Mapping[str, Any]:
    """Count free devices and memory; None if an amount is unknown. is_closed: the node is cordoned."""
    usable = [] if is_closed else [device for device in devices if is_usable(device)]
    free = [count_free_memory_mib(device) for device in usable]
    amounts = [amount for amount in free if amount is not None]
    is_known = bool(devices) and len(amounts) == len(free)
    total = sum(amounts)
    in_pieces = sum(amount or 0 for device, amount in zip(usable, free, strict=True) if device.held_by)
    return {
        "devices": len(devices),
        "unhealthy_devices": sum(device.healthy is False for device in devices),
        "cordoned_devices": sum(device.cordoned is True for device in devices),
        "free_devices": count_free_devices(usable),
        "memory_free_mib": total if is_known else None,
        "largest_free_mib": max(amounts, default=0) if is_known else None,
        "fragmentation": (round(in_pieces / total, 3) if total else 0.0) if is_known else None,
    }


def count_free_memory_mib(device: DeviceOccupancy) -> int | None:
    """Count the free memory of a device; None if its total or an amount in use is unknown, 0 if more is in use."""
    if device.memory_total_mib is None or device.memory_held_mib is None:
        return None
    return max(device.memory_total_mib - device.memory_held_mib, 0)

"""Reader of a range of time to replay: pods that wanted devices, with their last attempt and placement, and the nodes
that registered some."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

import orjson

from api.index.nodes.cluster_states import read_states_at
from api.index.nodes.occupancy_queries import PLACEMENTS_LIST, PlacementsPosition, build_placement_filters
from api.index.reading.client import OpenSearch
from api.index.reading.pages import build_first_position, decode_document, iterate_buckets, read_page
from api.index.reading.query_dsl import match_cluster, match_time_range, sort_latest_first
from api.index.waiting.waiting_pods import TRIED_WITHIN
from schemas.answers.replays import RecordedNode, RecordedPod, Recording
from schemas.codec.records import encode_value, format_rfc3339
from schemas.documents.placements import read_placement
from schemas.events import NodeStateChanged
from schemas.indices import ATTEMPTS, NODE_STATES
from schemas.json_types import Json
from schemas.placements import PodPlacement

MAX_PODS: Final = 20_000
"""Limit of the pods of a recording: with more it would have some 50 MB."""
_PAGE: Final = 500
_STEP: Final = timedelta(days=1)
"""Time after which registrations are looked at again."""
_ATTEMPT: Final = [
    "@timestamp", "nodes", "workload", "created_at", "first_judged_at",
    *(f"summary.{name}" for name in ("requests", "constraints", "node_policy", "device_policy", "bind", "description")),
]  # fmt: skip


class TooManyPodsError(ValueError):
    """More pods in the range than a recording has."""


class _PodKey(NamedTuple):
    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Offers:
    """Distinct sets of nodes, by their position."""

    positions: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, nodes: list[str]) -> int:
        return self.positions.setdefault(tuple(nodes), len(self.positions))


async def read_recording(index: OpenSearch, cluster: str, since: datetime, until: datetime) -> Recording | None:
    """Read the range; None without a recorded node. Raises ``TooManyPodsError``, and as ``OpenSearch.search``."""
    nodes = await _read_nodes(index, cluster, since, until)
    if not nodes:
        return None
    since = max(since, nodes[0].since)
    attempts = {key: bucket async for key, bucket in _read_attempts(index, cluster, since, until)}
    placements = {
        _PodKey(placement.pod.namespace, placement.pod.name, placement.pod.uid): placement
        async for placement in _read_placements(index, cluster, since, until)
    }
    keys = [*attempts, *(key for key in placements if key not in attempts)]
    if len(keys) > MAX_PODS:
        raise TooManyPodsError(f"the range has {len(keys):,} pods, and a recording at most {MAX_PODS:,}")
    offers = _Offers()
    pods = [_build_pod(key, attempts.get(key), placements.get(key), offers, until) for key in keys]
    return Recording(
        cluster=cluster,
        since=since,
        until=until,
        nodes=nodes,
        offers=[list(names) for names in offers.positions],
        pods=sorted(pods, key=lambda pod: (pod.waits_since, pod.namespace, pod.name)),
    )


async def _read_nodes(index: OpenSearch, cluster: str, since: datetime, until: datetime) -> list[RecordedNode]:
    """Read the nodes' devices at the beginning, and where they differ a day or more later."""
    first_seen = await _read_first_seen(index, cluster, since, until)
    rows: list[RecordedNode] = []
    registered: dict[str, object] = {}
    moment = since
    while True:
        states = {state.node: state for state in (await read_states_at(index, cluster, None, moment)).states}
        for name, state in sorted(states.items()):
            devices = _list_devices(state)
            if registered.get(name) != devices:
                # A node that is new since the last look came when its first state was written.
                is_new = moment > since and name not in registered
                came = first_seen.get(name, moment) if is_new else moment
                rows.append(RecordedNode(since=came, state=orjson.loads(encode_value(state))))
                registered[name] = devices
        if moment >= until:
            return sorted(rows, key=lambda row: row.since)
        moment = min(moment + _STEP, until)


def _list_devices(state: NodeStateChanged) -> tuple[object, ...]:
    """List what the node registers, without what is in use of it."""
    return state.kinds, state.uuid, state.kind.tolist(), state.healthy, state.cordoned


async def _read_first_seen(index: OpenSearch, cluster: str, since: datetime, until: datetime) -> Mapping[str, datetime]:
    """Read the time of each node's first state in the range."""
    clauses = _match_range(cluster, since, until)
    first = {"first": {"min": {"field": "@timestamp"}}}
    buckets = iterate_buckets(index, NODE_STATES.alias, clauses, "first_states", ("node",), first, size=_PAGE)
    return {
        bucket["key"]["node"]: datetime.fromtimestamp(bucket["first"]["value"] / 1000, UTC) async for bucket in buckets
    }


def _match_range(cluster: str, since: datetime, until: datetime) -> list[Json]:
    return [match_cluster(cluster), *match_time_range("@timestamp", format_rfc3339(since), format_rfc3339(until))]


async def _read_attempts(
    index: OpenSearch, cluster: str, since: datetime, until: datetime
) -> AsyncIterator[tuple[_PodKey, Json]]:
    """Read the last attempt in the range of each pod that wanted devices, and the time of its last repetition."""
    # A repetition lacks the nodes; the attempt that it repeats began six hours before it at most.
    full = {"bool": {"must_not": [{"exists": {"field": "repeats"}}]}}
    latest = {"top_hits": {"size": 1, "sort": [sort_latest_first("@timestamp")], "_source": _ATTEMPT}}
    sums = {"last": {"max": {"field": "@timestamp"}}, "full": {"filter": full, "aggs": {"latest": latest}}}
    clauses, fields = _match_range(cluster, since, until), ("namespace", "pod", "pod_uid")
    async for bucket in iterate_buckets(index, ATTEMPTS.alias, clauses, "pods", fields, sums, size=_PAGE):
        hits = bucket["full"]["latest"]["hits"]["hits"]
        source = hits[0]["_source"] if hits else {}
        if any(request.get("count") for request in source.get("summary", {}).get("requests") or ()):
            key = bucket["key"]
            last = datetime.fromtimestamp(bucket["last"]["value"] / 1000, UTC)
            yield _PodKey(key["namespace"], key["pod"], key["pod_uid"]), {**source, "last": last}


async def _read_placements(
    index: OpenSearch, cluster: str, since: datetime, until: datetime
) -> AsyncIterator[PodPlacement]:
    """Read the placements with devices that overlap the range; of a pod's several its last one comes last."""
    moments = format_rfc3339(since), format_rfc3339(until)
    position: PlacementsPosition | None = build_first_position(PlacementsPosition, *moments, until)
    while position:
        clauses = [*build_placement_filters({"cluster": cluster}, position), {"exists": {"field": "devices"}}]
        page = await read_page(index, PLACEMENTS_LIST.source, clauses, position, _PAGE)
        for hit in page.hits:
            yield decode_document(partial(read_placement, hit["_id"]), hit["_source"], hit["_id"])
        position = page.next_position


def _build_pod(
    key: _PodKey, attempt: Json | None, placement: PodPlacement | None, offers: _Offers, until: datetime
) -> RecordedPod:
    summary: Json = attempt["summary"] if attempt else {}
    bind = summary.get("bind") or {}
    bound_at = placement.bound_at or placement.started_at if placement else None
    if not placement and bind.get("bound"):
        bound_at = datetime.fromisoformat(bind["ended_at"])
    left_at = placement.ended_at if placement else None
    if attempt and not bound_at and attempt["last"] <= until - TRIED_WITHIN:
        left_at = attempt["last"]
    described = placement.description if placement else None
    description = described.model_dump() if described else summary.get("description") or {}
    return RecordedPod(
        namespace=key.namespace,
        name=key.name,
        uid=key.uid or f"{key.namespace}/{key.name}",
        workload=described.workload if described else (attempt or {}).get("workload") or "",
        priority=description.get("priority") or 0,
        waits_since=_find_beginning(attempt, placement),
        bound_at=bound_at,
        left_at=left_at,
        node=placement.node if placement else bind.get("node") or "",
        allocations=placement.allocations if placement else [],
        requests=summary.get("requests") or [],
        constraints=summary.get("constraints") or {},
        node_policy=summary.get("node_policy") or "",
        device_policy=summary.get("device_policy") or "",
        offered=offers.add(attempt["nodes"]) if attempt and attempt.get("nodes") else None,
    )


def _find_beginning(attempt: Json | None, placement: PodPlacement | None) -> datetime:
    if placement:
        return placement.waiting_since or placement.started_at
    source: Json = attempt or {}
    return datetime.fromisoformat(source.get("created_at") or source.get("first_judged_at") or source["@timestamp"])

"""Attempts that one device refused, from the device records and the node states to which they refer.

No field of the index has them: a record holds the verdicts of a thousand nodes in columns. So the reader first looks up
the nodes with the device, then reads the records that name one of these nodes, latest first, until a page is full.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.http.param_types import Milliseconds, MomentText
from api.index.attempts.attempt_reader import read_states
from api.index.reading.client import OpenSearch
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import (
    combine,
    match_cluster,
    match_term,
    match_terms,
    match_time_range,
    sort_by,
    sort_latest_first,
)
from schemas.answers.waiting import DeviceRefused
from schemas.codec.records import format_rfc3339
from schemas.documents.devices import read_devices_judged
from schemas.events import NO_STATE, NOT_REASONS, DevicesJudged, NodeStateChanged
from schemas.events.node_states import build_state_id
from schemas.indices import DEVICES, NODE_STATES
from schemas.json_types import Json

BATCH: Final = 50
"""Number of records that one search returns, of at most 64 KiB each."""
MAX_READ: Final = 500
"""Maximum number of records that one page reads; a page may have fewer items than its limit, and still a next page."""
_MAX_NODES: Final = 100
"""Maximum number of nodes of a device: one, unless it was moved, or two nodes register it."""
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_SORT: Final = [sort_latest_first("@timestamp"), sort_by("attempt_id")]


class RefusalsPosition(Position):
    """Beginning of a page of refusals: after all records of the attempt with these sort values."""

    sort: tuple[Milliseconds, str] | None
    since: MomentText | None
    until: MomentText | None


@dataclass(frozen=True, slots=True)
class RefusalsPage:
    items: list[DeviceRefused]
    read_records: int
    next_position: RefusalsPosition | None


def build_nodes_of_device_query(cluster: str, device: str, since: str | None) -> Json:
    """Build the search for the nodes that had ``device``: all nodes with a state that names it."""
    # A valid state is written again once a day.
    start = datetime.fromisoformat(since) if since else None
    earliest = format_rfc3339(start - min(timedelta(days=1), start - _FIRST)) if start else None
    clauses = [match_cluster(cluster), match_term("devices", device), *match_time_range("@timestamp", earliest, None)]
    by_node = {"terms": {"field": "node", "size": _MAX_NODES}}
    return {"query": combine(clauses), "size": 0, "track_total_hits": False, "aggs": {"nodes": by_node}}


def build_records_query(
    cluster: str, nodes: Iterable[str], values: Mapping[str, str | None], position: RefusalsPosition
) -> Json:
    """Build the search for ``BATCH`` device records of any of ``nodes``. ``values``: field to required value."""
    clauses = [match_cluster(cluster), {"terms": {"nodes": sorted(nodes)}}, *match_terms(values)]
    clauses += match_time_range("@timestamp", position.since, position.until)
    body = {
        "query": combine(clauses),
        "sort": _SORT,
        "size": BATCH,
        "_source": ["record"],
        "track_total_hits": False,
    }
    return body | ({"search_after": list(position.sort)} if position.sort else {})


async def read_refusals(
    index: OpenSearch,
    cluster: Cluster,
    device: str,
    values: Mapping[str, str | None],
    position: RefusalsPosition,
    limit: int,
) -> RefusalsPage:
    """Read at least ``limit`` refusals by ``device`` from ``position``, if there are as many, of complete attempts."""
    answer = await index.search(NODE_STATES.alias, build_nodes_of_device_query(cluster.name, device, position.since))
    buckets = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    nodes = frozenset(bucket["key"] for bucket in buckets)
    items: list[DeviceRefused] = []
    read = 0
    while nodes and read < MAX_READ and len(items) < limit:
        answer = await index.search(DEVICES.alias, build_records_query(cluster.name, nodes, values, position))
        hits = answer["hits"]["hits"]
        is_last = len(hits) < BATCH
        # The records of an attempt have equal sort values: the next batch begins after a complete attempt.
        batch = hits if is_last else _drop_last_attempt(hits)
        items += await _read_batch(index, cluster, device, nodes, batch)
        read += len(batch)
        if is_last:
            return RefusalsPage(items, read, None)
        position = position.model_copy(update={"sort": tuple(batch[-1]["sort"])})
    return RefusalsPage(items, read, position if nodes else None)


def _drop_last_attempt(hits: list[Json]) -> list[Json]:
    """Drop the hits of the last attempt, which may have further ones; keep all hits if they belong to one attempt."""
    last = hits[-1]["sort"]
    return [hit for hit in hits if hit["sort"] != last] or hits


async def _read_batch(
    index: OpenSearch, cluster: Cluster, device: str, nodes: frozenset[str], hits: list[Json]
) -> list[DeviceRefused]:
    records = [decode_document(read_devices_judged, hit["_source"], hit["_id"]) for hit in hits]
    states: dict[str, NodeStateChanged] = {}
    # The reader looks for a state in the indices of the days around its verdict.
    for _, of_day in groupby(records, key=lambda record: record.started_at.date()):
        same_day = list(of_day)
        ids = {name for record in same_day for _, name in _iterate_rows_of_nodes(record, nodes) if name}
        states |= await read_states(index, same_day[0].started_at, sorted(ids - states.keys()))
    return [item for record in records for item in find_refusals(cluster, record, device, nodes, states)]


def _iterate_rows_of_nodes(record: DevicesJudged, nodes: frozenset[str]) -> Iterator[tuple[range, str]]:
    """Iterate over ``nodes`` in the record: the rows of a node, and the id of their state (empty without one)."""
    start = 0
    for node, revision, rows in zip(record.nodes, record.revision.tolist(), record.rows.tolist(), strict=True):
        if node in nodes:
            is_known = revision != NO_STATE
            name = build_state_id(record.cluster, record.scheduler, node, record.epoch, revision) if is_known else ""
            yield range(start, start + rows), name
        start += rows


def find_refusals(
    cluster: Cluster,
    record: DevicesJudged,
    device: str,
    nodes: frozenset[str],
    states: Mapping[str, NodeStateChanged],
) -> Iterator[DeviceRefused]:
    """Find the rows of ``record`` in which ``device`` was refused; rows without a known state name no device."""
    for rows, name in _iterate_rows_of_nodes(record, nodes):
        state = states.get(name)
        if state is None:
            continue
        for row in rows:
            position = int(record.device[row]) if record.device.size else row - rows.start
            verdict = record.verdicts[record.verdict[row]]
            if verdict not in NOT_REASONS and position < len(state.uuid) and state.uuid[position] == device:
                yield _to_item(cluster, record, state, position, verdict)


def _to_item(
    cluster: Cluster, record: DevicesJudged, state: NodeStateChanged, position: int, verdict: str
) -> DeviceRefused:
    namespace, name = record.pod.namespace, record.pod.name
    return DeviceRefused(
        attempt_id=record.attempt_id,
        namespace=namespace,
        name=name,
        scheduler=record.scheduler,
        started_at=format_rfc3339(record.started_at),
        node=state.node,
        container=record.request.container,
        reason=verdict,
        memory_total_mib=state.kinds[state.kind[position]].memory_mib,
        memory_used_mib=_to_known(state.memory_used_mib[position]),
        cores_used_percent=_to_known(state.cores_used_percent[position]),
        slots_used=_to_known(state.slots_used[position]),
        attempt=cluster.link_attempt(record.attempt_id),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
    )


def _to_known(number: Any) -> int | None:
    return int(number) if number >= 0 else None

"""Which attempts one device refused, from the device records and the node states that they refer to.

No index field says it: a record holds the verdicts of a thousand nodes in columns. So the nodes that have the device
are looked up first, then the records that name one of these nodes are read, latest first, until a page is full.
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
from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, sort_latest_first, term, term_filters, time_range
from schemas.answers.waiting import DeviceRefused
from schemas.codec.records import format_rfc3339
from schemas.documents.devices import read_devices_judged
from schemas.events import NO_STATE, NOT_REASONS, DevicesJudged, NodeStateChanged
from schemas.events.node_states import build_state_id
from schemas.indices import DEVICES, NODE_STATES
from schemas.json_types import Json

BATCH: Final = 50
"""Records that one search returns, of at most 64 KiB each."""
MAX_READ: Final = 500
"""Records that one page reads at most; a page may have fewer items than asked for, and still a next page."""
_MAX_NODES: Final = 100
"""A device is on one node, unless it was moved, or two nodes register it."""
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_SORT: Final = [sort_latest_first("@timestamp"), sort_by("attempt_id")]


class RefusalsPosition(Position):
    """Where a page of refusals begins: behind all records of the attempt with these sort values."""

    sort: tuple[Milliseconds, str] | None
    since: MomentText | None
    until: MomentText | None


@dataclass(frozen=True, slots=True)
class RefusalsPage:
    items: list[DeviceRefused]
    read_records: int
    next_position: RefusalsPosition | None


def nodes_of_device_query(cluster: str, device: str, since: str | None) -> Json:
    """The body of a search for the nodes that had ``device``: all those of which a state names it."""
    # A state that still holds is written again once a day.
    start = datetime.fromisoformat(since) if since else None
    earliest = format_rfc3339(start - min(timedelta(days=1), start - _FIRST)) if start else None
    clauses = [of_cluster(cluster), term("devices", device), *time_range("@timestamp", earliest, None)]
    by_node = {"terms": {"field": "node", "size": _MAX_NODES}}
    return {"query": all_of(clauses), "size": 0, "track_total_hits": False, "aggs": {"nodes": by_node}}


def records_query(
    cluster: str, nodes: Iterable[str], values: Mapping[str, str | None], position: RefusalsPosition
) -> Json:
    """The body of a search for ``BATCH`` device records of any of ``nodes``. ``values``: field to required value."""
    clauses = [of_cluster(cluster), {"terms": {"nodes": sorted(nodes)}}, *term_filters(values)]
    clauses += time_range("@timestamp", position.since, position.until)
    body = {
        "query": all_of(clauses),
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
    """At least ``limit`` refusals by ``device`` from ``position`` on, if there are as many; whole attempts only."""
    answer = await index.search(NODE_STATES.alias, nodes_of_device_query(cluster.name, device, position.since))
    buckets = answer.get("aggregations", {}).get("nodes", {}).get("buckets", [])
    nodes = frozenset(bucket["key"] for bucket in buckets)
    items: list[DeviceRefused] = []
    read = 0
    while nodes and read < MAX_READ and len(items) < limit:
        answer = await index.search(DEVICES.alias, records_query(cluster.name, nodes, values, position))
        hits = answer["hits"]["hits"]
        is_last = len(hits) < BATCH
        # The records of an attempt have equal sort values: the next batch begins behind an attempt that was read whole.
        batch = hits if is_last else _whole_attempts(hits)
        items += await _refusals(index, cluster, device, nodes, batch)
        read += len(batch)
        if is_last:
            return RefusalsPage(items, read, None)
        position = position.model_copy(update={"sort": tuple(batch[-1]["sort"])})
    return RefusalsPage(items, read, position if nodes else None)


def _whole_attempts(hits: list[Json]) -> list[Json]:
    """``hits`` without those of the last attempt, of which more may follow; all of them where they are of one."""
    last = hits[-1]["sort"]
    return [hit for hit in hits if hit["sort"] != last] or hits


async def _refusals(
    index: OpenSearch, cluster: Cluster, device: str, nodes: frozenset[str], hits: list[Json]
) -> list[DeviceRefused]:
    records = [decode_document(read_devices_judged, hit["_source"], hit["_id"]) for hit in hits]
    states: dict[str, NodeStateChanged] = {}
    # A state is looked for in the indices of the days around its verdict.
    for _, of_day in groupby(records, key=lambda record: record.started_at.date()):
        same_day = list(of_day)
        ids = {name for record in same_day for _, name in _rows_of_nodes(record, nodes) if name}
        states |= await read_states(index, same_day[0].started_at, sorted(ids - states.keys()))
    return [item for record in records for item in refusals_in(cluster, record, device, nodes, states)]


def _rows_of_nodes(record: DevicesJudged, nodes: frozenset[str]) -> Iterator[tuple[range, str]]:
    """For each of ``nodes`` in the record: its rows, and the id of the state that they refer to (empty for none)."""
    start = 0
    for node, revision, rows in zip(record.nodes, record.revision.tolist(), record.rows.tolist(), strict=True):
        if node in nodes:
            is_known = revision != NO_STATE
            name = build_state_id(record.cluster, record.scheduler, node, record.epoch, revision) if is_known else ""
            yield range(start, start + rows), name
        start += rows


def refusals_in(
    cluster: Cluster,
    record: DevicesJudged,
    device: str,
    nodes: frozenset[str],
    states: Mapping[str, NodeStateChanged],
) -> Iterator[DeviceRefused]:
    """The rows of ``record`` in which ``device`` was refused; rows without a known state name no device."""
    for rows, name in _rows_of_nodes(record, nodes):
        state = states.get(name)
        if state is None:
            continue
        for row in rows:
            place = int(record.device[row]) if record.device.size else row - rows.start
            verdict = record.verdicts[record.verdict[row]]
            if verdict not in NOT_REASONS and place < len(state.uuid) and state.uuid[place] == device:
                yield _item(cluster, record, state, place, verdict)


def _item(cluster: Cluster, record: DevicesJudged, state: NodeStateChanged, place: int, verdict: str) -> DeviceRefused:
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
        memory_total_mib=state.kinds[state.kind[place]].memory_mib,
        memory_used_mib=_known(state.memory_used_mib[place]),
        cores_used_percent=_known(state.cores_used_percent[place]),
        slots_used=_known(state.slots_used[place]),
        attempt=cluster.link_attempt(record.attempt_id),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
    )


def _known(number: Any) -> int | None:
    return int(number) if number >= 0 else None

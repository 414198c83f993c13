"""Reader of attempts in the index: the latest of a pod, the items of a list, and the devices that an attempt judged.

A retry that changed nothing is stored as a short document that refers to the attempt that it repeats
(docs/decisions/0010); the reader puts the two together.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Final

from pydantic import TypeAdapter

from api.http.cluster import Cluster
from api.index.attempts import attempt_queries
from api.index.attempts.attempt_queries import PodName
from api.index.reading.client import OpenSearch
from api.index.reading.pages import decode_document
from engine.summaries.retries import resolve
from schemas.answers.attempts import AttemptFound, DeviceLog
from schemas.codec.records import Rejected
from schemas.documents.attempts import read_repetition, read_summary
from schemas.documents.devices import read_devices_judged, read_node_state
from schemas.events import NO_STATE, AttemptRepeated, AttemptSummarized, DevicesJudged, NodeStateChanged
from schemas.events.devices import DeviceRow
from schemas.events.node_states import build_state_id
from schemas.indices import ATTEMPTS, DEVICES, NODE_STATES
from schemas.json_types import Json

Location = tuple[str, str]
"""Name of a document's index, and its id."""

MAX_DEVICE_RECORDS: Final = 100
NO_DEVICE_RECORDS: Final = (
    f"no device records of these nodes are in the index: they are kept for {DEVICES.retention.days} days, "
    "and only where the worker stores devices"
)
STATES_MISSING: Final = (
    "the verdicts are shown without their devices, because these node states are not in the index (the index writer "
    "has not written them yet, they were lost, or they are past their retention): {0}"
)
NO_STATE_REPORTED: Final = "the verdicts are shown without their devices where the source reports no state of the node"
MAX_NAMED_STATES: Final = 5
DEVICES_OF_ORIGINAL: Final = (
    "every node answered as in attempt {0}, so the devices were not stored again: these are those of attempt {0}."
)


async def read_latest_attempt(index: OpenSearch, pod: PodName) -> tuple[AttemptSummarized, str] | None:
    """Read the latest attempt of a pod, and the id of its original: its own id, unless it repeats another attempt.

    None if the index has no attempt of the pod, or if the original of its latest attempt is past its retention.
    """
    body = partial(attempt_queries.build_latest_attempts_query, pod.cluster, pod.namespace)
    answer = await index.search_for(ATTEMPTS.alias, pod.name, ("latest", pod.cluster, pod.namespace), body)
    return await _read_complete(index, [hit for hit in answer["hits"]["hits"] if hit["fields"]["pod"] == [pod.name]])


async def read_attempt(index: OpenSearch, cluster: str, attempt_id: str) -> tuple[AttemptSummarized, str] | None:
    """Read the attempt with this id or with a report of this id, and the id of its original."""
    answer = await index.search(ATTEMPTS.alias, attempt_queries.build_attempt_query(cluster, attempt_id))
    # The attempt with this id first: a report may have been published apart before the reports were merged.
    hits = sorted(answer["hits"]["hits"], key=lambda hit: bool(hit["_id"] != attempt_id))
    return await _read_complete(index, hits)


async def _read_complete(index: OpenSearch, hits: Iterable[Json]) -> tuple[AttemptSummarized, str] | None:
    """Read the first hit whose attempt is complete, and the id of its original."""
    for hit in hits:
        attempt_id, source = hit["_id"], hit["_source"]
        fields = attempt_queries.FULL_SUMMARY
        summaries = await resolve_retries(
            index, [(hit["_index"], attempt_id)], {attempt_id: source}, fields, read_summary
        )
        if summary := summaries.get(attempt_id):
            retry = _decode_retry(source, attempt_id)
            return summary, retry.repeats if retry else attempt_id
    return None


async def resolve_retries(
    index: OpenSearch,
    locations: Sequence[Location],
    sources: Mapping[str, Json],
    fields: object,
    decode: Callable[[Json], AttemptSummarized | Rejected],
) -> dict[str, AttemptSummarized]:
    """Resolve the documents at ``locations`` into summaries by attempt id.

    A retry gets the nodes of the attempt that it repeats, from ``sources`` (by id) or by another read of ``fields``.
    A retry whose original is past its retention is left out. Raises ``UnreadableError``.
    """
    retries = {name: retry for _, name in locations if (retry := _decode_retry(sources[name], name))}
    # A retry is stored in the same daily index as the attempt that it repeats.
    originals = {(index_name, retries[name].repeats) for index_name, name in locations if name in retries}
    missing = sorted(location for location in originals if location[1] not in sources)
    original_sources = {**sources, **await read_documents(index, missing, fields)}
    summaries = {}
    for _, name in locations:
        source, retry = sources[name], retries.get(name)
        if retry is None:
            summaries[name] = decode_document(decode, source, name)
        elif retry.repeats in original_sources:
            original = decode_document(decode, original_sources[retry.repeats], retry.repeats)
            summaries[name] = resolve(retry, original)
    return summaries


def _decode_retry(source: Json, attempt_id: str) -> AttemptRepeated | None:
    """Decode the event of a document that stores a retry; None for a document with a complete attempt."""
    return decode_document(read_repetition, source, attempt_id)


async def read_items(index: OpenSearch, cluster: Cluster, hits: list[Json]) -> list[AttemptFound]:
    """Read the items for ``hits`` of ``attempt_queries.SEARCH_SOURCE``, in their order."""
    locations = [(hit["_index"], hit["_id"]) for hit in hits]
    sources = {hit["_id"]: hit["_source"] for hit in hits}
    summaries = await resolve_retries(
        index, locations, sources, attempt_queries.SUMMARY_WITHOUT_NODES, attempt_queries.decode_without_nodes
    )
    resolved = [location for location in locations if location[1] in summaries]
    summaries_with_nodes = await with_node_columns(index, resolved, summaries, attempt_queries.does_item_need_nodes)
    return [attempt_queries.to_search_item(cluster, summary) for summary in summaries_with_nodes]


async def with_node_columns(
    index: OpenSearch,
    locations: Sequence[Location],
    summaries: dict[str, AttemptSummarized],
    needs_nodes: Callable[[AttemptSummarized], bool],
) -> list[AttemptSummarized]:
    """Order ``summaries`` (by id) as ``locations``, and read those again that need their node columns."""
    # Two requests for a page: one for all without nodes, one for the few that need them, instead of megabytes for all.
    incomplete = [location for location in locations if needs_nodes(summaries[location[1]])]
    sources = await read_documents(index, incomplete, ["summary"])
    full_summaries = {name: decode_document(read_summary, source, name) for name, source in sources.items()}
    return [full_summaries.get(name) or summaries[name] for _, name in locations]


async def read_documents(index: OpenSearch, locations: Sequence[Location], fields: object) -> dict[str, Json]:
    """Read ``fields`` of the documents that still exist, by id.

    A read by id sees the latest version of a document; a search sees the version at the last refresh.
    """
    requested = [{"_index": index_name, "_id": name, "_source": fields} for index_name, name in locations]
    sources = await index.read_documents(requested)
    return {name: source for (_, name), source in zip(locations, sources, strict=True) if source is not None}


async def read_devices(
    index: OpenSearch, cluster: str, attempt_id: str, started_at: datetime, nodes: Sequence[str]
) -> tuple[list[DeviceLog], str]:
    """Read the devices of ``nodes`` as the attempt judged them, by node and container, and a note on missing ones.

    ``started_at`` is any time on the UTC day of the attempt: it chooses the indices.
    """
    body = attempt_queries.build_device_records_query(cluster, attempt_id, nodes, MAX_DEVICE_RECORDS)
    answer = await index.search(DEVICES.join_names(started_at), body)
    hits = answer["hits"]["hits"]
    records = [decode_document(read_devices_judged, hit["_source"], hit["_id"]) for hit in hits]
    records.sort(key=lambda record: (record.container, record.part))
    # A record holds about a thousand nodes.
    requested_nodes = frozenset(nodes)
    ids = {state for record in records for state in _map_states(record, requested_nodes).values() if state}
    states = await read_states(index, started_at, sorted(ids))
    rows = [row for record in records for row in _to_device_rows(record, requested_nodes, states)]
    # Stable: within a node the order of containers and devices stays that of the records.
    rows.sort(key=lambda row: row.node)
    missing = sorted(ids - states.keys())
    unreported = any(not state for record in records for state in _map_states(record, requested_nodes).values())
    return rows, _describe_missing(len(hits), answer["hits"]["total"]["value"], missing, unreported=unreported)


async def read_states(index: OpenSearch, started_at: datetime, ids: Sequence[str]) -> dict[str, NodeStateChanged]:
    """Read the node states with ``ids``, by id: from memory, or else from the index."""
    states = index.states_in_memory(ids)
    # A state is written at least once a day, and before the verdicts that refer to it. A state written during the
    # attempt may belong to the next day.
    sources: dict[str, Json] = {}
    for after in (0, -1, 1):
        for name, end in NODE_STATES.list_places(started_at + timedelta(days=after)):
            if missing := [id_ for id_ in ids if id_ not in states and id_ not in sources]:
                documents = await read_documents(index, [(name, state + end) for state in missing], ["state"])
                sources |= {document_id.removesuffix(end): source for document_id, source in documents.items()}
    return states | {name: decode_document(read_node_state, source, name) for name, source in sources.items()}


def _map_states(record: DevicesJudged, nodes: Collection[str]) -> dict[str, str]:
    """Map each of ``nodes`` to the id of the state to which the record refers; empty without a state."""
    return {
        node: ""
        if revision == NO_STATE
        else build_state_id(record.cluster, record.scheduler, node, record.epoch, revision)
        for node, revision in zip(record.nodes, record.revision.tolist(), strict=True)
        if node in nodes
    }


def _to_device_rows(
    record: DevicesJudged, nodes: frozenset[str], states: Mapping[str, NodeStateChanged]
) -> list[DeviceLog]:
    def find_state(node: str, revision: int) -> NodeStateChanged | None:
        return states.get(build_state_id(record.cluster, record.scheduler, node, record.epoch, revision))

    container = record.request.container
    rows = [dict(zip(DeviceRow._fields, row, strict=True)) for row in record.iterate_devices(find_state, nodes)]
    return _build_adapter().validate_python([row | {"container": container} for row in rows])


@cache
def _build_adapter() -> TypeAdapter[list[DeviceLog]]:
    # To validate all rows at once takes half the time of one after the other.
    return TypeAdapter(list[DeviceLog])


def _describe_missing(hit_count: int, total: int, missing: Sequence[str], *, unreported: bool) -> str:
    """Describe what is missing from the devices; empty if nothing is.

    ``total`` records match, of which OpenSearch returned ``hit_count``; the index lacks the states ``missing``.
    """
    if not total:
        return NO_DEVICE_RECORDS
    notes = []
    if total > hit_count:
        notes.append(f"{hit_count} of {total} device records were read: name fewer nodes")
    if missing:
        notes.append(STATES_MISSING.format(", ".join(missing[:MAX_NAMED_STATES])))
    if unreported:
        notes.append(NO_STATE_REPORTED)
    return "; ".join(notes)

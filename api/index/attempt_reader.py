"""Reads from the index: the latest attempt of a pod, the attempts of a list, and the devices behind an attempt."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from api.http.errors import unreadable
from api.index import attempt_queries
from api.index.client import ATTEMPTS, OpenSearch
from schemas.answers.attempts import AttemptFound, DeviceLog
from schemas.codec.records import Rejected
from schemas.documents.attempts import repeated_of, summary_of
from schemas.documents.devices import devices_of
from schemas.events import AttemptRepeated, AttemptSummarized, DevicesJudged
from schemas.indices import DEVICES, INVENTORIES
from summaries.retries import resolve

Json = dict[str, Any]
T = TypeVar("T")

MAX_DEVICE_RECORDS: Final = 100
NO_DEVICE_RECORDS: Final = (
    f"no device records of these nodes are in the index: they are kept for {DEVICES.retention.days} days, "
    "and are there only where a worker stores devices"
)

REPEATED: Final = (
    "every node answered as in attempt {0}, so its devices were not stored again: these are those of attempt {0}."
)


async def latest_of_pod(index: OpenSearch, namespace: str, name: str) -> tuple[AttemptSummarized, str] | None:
    """The attempt, and the id of the one that has its detail: its own, unless it repeats another."""
    answer = await index.search(ATTEMPTS, attempt_queries.latest_of_pod(namespace, name))
    for hit in answer["hits"]["hits"]:
        place = hit["_index"], hit["_id"]
        summaries = await put_together(
            index, [place], {hit["_id"]: hit["_source"]}, attempt_queries.WHOLE_SUMMARY, summary_of
        )
        repeated = _repeated(hit["_source"], hit["_id"])
        return next(((each, repeated.repeats if repeated else each.attempt_id) for each in summaries.values()), None)
    return None


async def put_together(
    index: OpenSearch,
    places: Sequence[tuple[str, str]],
    sources: Mapping[str, Json],
    fields: object,
    read: Callable[[Json], AttemptSummarized | Rejected],
) -> dict[str, AttemptSummarized]:
    """The summaries of documents (by id) at ``places`` (index and id); of repetitions with what they repeat.

    A repetition whose other half has outlived its retention is left out.
    """
    repeated = {name: said for name, source in sources.items() if (said := _repeated(source, name))}
    others = {(where, repeated[name].repeats) for where, name in places if name in repeated}
    wholes = await documents(index, sorted(others), fields)
    found = {}
    for name, source in sources.items():
        event = repeated.get(name)
        if event is None:
            found[name] = readable(read, source, name)
        elif event.repeats in wholes:
            found[name] = resolve(event, readable(read, wholes[event.repeats], event.repeats))
    return found


def _repeated(source: Json, name: str) -> AttemptRepeated | None:
    return readable(repeated_of, source, name)


async def items(index: OpenSearch, hits: list[Json]) -> list[AttemptFound]:
    places = [(hit["_index"], hit["_id"]) for hit in hits]
    sources = {hit["_id"]: hit["_source"] for hit in hits}
    summaries = await put_together(
        index, places, sources, attempt_queries.SUMMARY_WITHOUT_NODES, attempt_queries.without_nodes
    )
    there = [place for place in places if place[1] in summaries]
    return list(map(attempt_queries.found, await with_nodes(index, there, summaries, attempt_queries.line_needs_nodes)))


async def with_nodes(
    index: OpenSearch,
    places: Sequence[tuple[str, str]],
    summaries: dict[str, AttemptSummarized],
    needs_nodes: Callable[[AttemptSummarized], bool],
) -> list[AttemptSummarized]:
    """``summaries`` (by id) in the order of ``places`` (index and id), those that need their nodes read with them."""
    wanted = [place for place in places if needs_nodes(summaries[place[1]])]
    sources = await documents(index, wanted, ["summary"])
    whole = {name: readable(summary_of, source, name) for name, source in sources.items()}
    return [whole.get(name) or summaries[name] for _, name in places]


async def documents(index: OpenSearch, places: Sequence[tuple[str, str]], fields: object) -> dict[str, Json]:
    """Id to ``_source``, cut down to ``fields``, of those that are still there; by id, so never an older telling."""
    asked = [{"_index": where, "_id": name, "_source": fields} for where, name in places]
    sources = await index.documents(asked)
    return {name: source for (_, name), source in zip(places, sources, strict=True) if source is not None}


def readable(read: Callable[[Json], T | Rejected], source: Json, name: str) -> T:
    said = read(source)
    if isinstance(said, Rejected):
        raise unreadable(name, str(said))
    return said


async def devices_of_nodes(
    index: OpenSearch, attempt_id: str, started_at: datetime, nodes: Sequence[str]
) -> tuple[list[DeviceLog], str]:
    """Every device of ``nodes`` as it was judged, by node and container; a note where that is not all of them.

    ``started`` is a time on the day of the attempt.
    """
    body = attempt_queries.devices_of_nodes(attempt_id, nodes, MAX_DEVICE_RECORDS)
    answer = await index.search(DEVICES.name(started_at), body)
    records = await _device_records(index, started_at, answer["hits"]["hits"])
    wanted = frozenset(nodes)
    rows = [row for record in records for row in _rows(record, wanted)]
    rows.sort(key=lambda row: row.node)
    return rows, _note(len(records), len(answer["hits"]["hits"]), answer["hits"]["total"]["value"])


async def _device_records(index: OpenSearch, started_at: datetime, hits: list[Json]) -> list[DevicesJudged]:
    """In order; a record whose inventory is gone is left out."""
    sources: dict[str, Json] = {hit["_id"]: hit["_source"] for hit in hits}
    named = {name: source["inventory"] for name, source in sources.items() if source.get("inventory")}
    places = [(INVENTORIES.name(started_at), inventory) for inventory in sorted(set(named.values()))]
    inventories = await documents(index, places, ["record"])
    records = [
        readable(partial(devices_of, inventory=inventories.get(named.get(name, ""))), source, name)
        for name, source in sources.items()
        if name not in named or named[name] in inventories
    ]
    return sorted(records, key=lambda record: (record.container, record.part))


def _rows(record: DevicesJudged, nodes: frozenset[str]) -> list[DeviceLog]:
    container = record.request.container
    return [DeviceLog(container=container, **row._asdict()) for row in record.each_device() if row.node in nodes]


def _note(read: int, found: int, total: int) -> str:
    if not total:
        return NO_DEVICE_RECORDS
    notes = [f"{found} of {total} device records were read: name fewer nodes"] if total > found else []
    if found > read:
        notes.append(f"device records that name devices which are not in the index any more: {found - read}")
    return "; ".join(notes)

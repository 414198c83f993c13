"""Long lists in pages, latest first: the source of a list, the position of a page, and its reader. Pure.

A page begins after the sort values of the last item before (``search_after``), so that OpenSearch keeps nothing open
between pages; a node allows only 300 open searches. New items sort before the position, and sort values are unique and
stay the same when a document is written again: no item appears twice.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from api.http.cluster import Cluster
from api.http.errors import BadRequestError, to_unreadable_error
from api.http.pagination import Position
from api.http.param_types import MomentText, parse_time
from api.index.reading.query_dsl import combine
from schemas.codec.records import Rejected, format_rfc3339
from schemas.json_types import Json

SortValues = TypeVar("SortValues", bound=tuple[int | str, ...])
P = TypeVar("P", bound="PagePosition[Any]")
T = TypeVar("T")


class PagePosition(Position, Generic[SortValues]):
    """Beginning of a page of a list. ``SortValues`` has one value for each entry of ``ListSource.sort``."""

    sort: SortValues | None
    """Sort values of the last item of the page before; None for the first page."""
    total: int
    """Number of items of the list at its first page; 0 before that."""
    since: MomentText | None
    """Start in RFC 3339: the first page resolves a duration, and later pages keep its time."""
    until: MomentText | None
    """End in RFC 3339, resolved like ``since``."""


@dataclass(frozen=True, slots=True)
class ListSource:
    """Source and order of a list."""

    alias: str
    sort: Sequence[Json]
    """Order with unique values, which are the same on every shard and stay when a document is written again."""
    source: object
    """Fields of a document to read, as ``_source`` of a search."""
    counts: Json | None = None
    """Aggregations over the list, for its first page."""


@dataclass(frozen=True, slots=True)
class ListDefinition(Generic[P]):
    """List that the API answers in pages."""

    name: str
    """Name in the scope of its tokens: a token of one list can't continue another."""
    source: ListSource
    position_type: type[P]
    item: Callable[[Cluster, Json], BaseModel]
    """Converter of a hit into an item of the answer."""
    answer_type: type[BaseModel]
    """Model with ``total``, ``items`` and ``continue``."""


def resolve_range(since: str | None, until: str | None, now: datetime) -> tuple[str | None, str | None]:
    """Resolve the range of time into RFC 3339. Raises ``BadRequestError`` for an empty one."""
    start, end = (parse_time(text, now) if text else None for text in (since, until))
    if start and end and start >= end:
        raise BadRequestError(
            f"the range is empty: since ({format_rfc3339(start)}) is not before until ({format_rfc3339(end)})",
            "Give the earlier time as since; durations such as 2h count back from now.",
        )
    return (format_rfc3339(start) if start else None), (format_rfc3339(end) if end else None)


def build_first_position(position_type: type[P], since: str | None, until: str | None, now: datetime) -> P:
    """Build the position of the first page. Raises ``BadRequestError`` for an empty range."""
    start, end = resolve_range(since, until, now)
    return position_type(sort=None, total=0, since=start, until=end)


def build_page_body(source: ListSource, clauses: Sequence[Json], position: PagePosition[Any], limit: int) -> Json:
    """Build the search for one page and one item more, whose presence shows that there is a next page."""
    body: Json = {
        "query": combine(clauses),
        "sort": list(source.sort),
        "size": limit + 1,
        "_source": source.source,
    }
    if position.sort:
        # Without the total, OpenSearch skips shards that end before the position.
        return body | {"search_after": list(position.sort), "track_total_hits": False}
    # Exact, because clients show it as the length of the list; by default OpenSearch stops counting at 10,000.
    body["track_total_hits"] = True
    return body | ({"aggs": source.counts} if source.counts else {})


class Searcher(Protocol):
    """Part of the client that pages need, so that queries stay free of clients."""

    async def search(self, alias: str, body: Json) -> Json: ...


@dataclass(frozen=True, slots=True)
class Page(Generic[P]):
    total: int
    """Number of items of the list at its first page."""
    hits: list[Json]
    next_position: P | None
    """Beginning of the next page; None after the last one."""
    counts: Json | None = None
    """Result of ``ListSource.counts``; None after the first page."""


async def iterate_buckets(
    index: Searcher, alias: str, clauses: Sequence[Json], name: str, fields: Sequence[str], sums: Json, *, size: int
) -> AsyncIterator[Json]:
    """Iterate over the buckets of an aggregation ``name``: one for each distinct value of the fields, in their order.

    sums: aggregations of each bucket. size: buckets of one search. Raises as ``OpenSearch.search``.
    """
    composite: Json = {"size": size, "sources": [{field: {"terms": {"field": field}}} for field in fields]}
    while True:
        body = {"query": combine(clauses), "size": 0, "track_total_hits": False}
        answer = await index.search(alias, {**body, "aggs": {name: {"composite": composite, "aggs": sums}}})
        page = answer.get("aggregations", {}).get(name, {})
        buckets = page.get("buckets", [])
        for bucket in buckets:
            yield bucket
        if len(buckets) < size:
            return
        composite = {**composite, "after": page["after_key"]}


async def read_page(index: Searcher, source: ListSource, clauses: Sequence[Json], position: P, limit: int) -> Page[P]:
    """Read at most ``limit`` hits that meet all ``clauses``, from ``position``. Raises as ``OpenSearch.search``."""
    answer = await index.search(source.alias, build_page_body(source, clauses, position, limit))
    hits = answer["hits"]["hits"]
    page = hits[:limit]
    total = position.total if position.sort else answer["hits"]["total"]["value"]
    next_position = None
    if len(hits) > len(page):
        next_position = position.model_copy(update={"sort": tuple(page[-1]["sort"]), "total": total})
    return Page(total, page, next_position, answer.get("aggregations"))


def decode_document(decode: Callable[[Json], T | Rejected], source: Json, document_id: str) -> T:
    """Decode the source of a document. Raises ``UnreadableError``, which names the document, if it is rejected."""
    decoded = decode(source)
    if isinstance(decoded, Rejected):
        raise to_unreadable_error(document_id, str(decoded))
    return decoded

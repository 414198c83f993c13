"""Long lists in pages, latest first: what a list is read from, where a page begins, and the body that reads it. Pure.

A page begins behind the sort values of the last item before (``search_after``); OpenSearch keeps nothing open from page
to page, of which a node allows only 300. What is new sorts before the position, and sort values are unique and stay the
same when a document is written again: no item appears twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from api.http.cluster import Cluster
from api.http.errors import BadRequestError
from api.http.pagination import Position
from api.http.param_types import MomentText, parse_time
from api.index.reading.query_dsl import all_of
from schemas.codec.records import format_rfc3339
from schemas.json_types import Json

SortValues = TypeVar("SortValues", bound=tuple[int | str, ...])
P = TypeVar("P", bound="PagePosition[Any]")


class PagePosition(Position, Generic[SortValues]):
    """Where a page of a list begins. ``SortValues`` has one value for each entry of ``ListSource.sort``."""

    sort: SortValues | None
    """The sort values of the last item of the page before; None for the first page."""
    total: int
    """How many items the list had at its first page; 0 before that."""
    since: MomentText | None
    """RFC 3339: a duration is resolved at the first page and stays what it was then."""
    until: MomentText | None
    """As ``since``."""


@dataclass(frozen=True, slots=True)
class ListSource:
    """What a list is read from, and in which order."""

    alias: str
    sort: Sequence[Json]
    """Unique, the same on every shard, and never changed when a document is written again."""
    source: object
    """The fields of a document to read, as ``_source`` of a search."""
    counts: Json | None = None
    """Aggregations over the whole list, which its first page has besides."""


@dataclass(frozen=True, slots=True)
class ListDefinition(Generic[P]):
    """A list that the API answers in pages."""

    name: str
    """Part of the scope of its tokens: a token of one list can't continue another."""
    source: ListSource
    position_type: type[P]
    item: Callable[[Cluster, Json], BaseModel]
    """A hit as an item of the answer."""
    answer_type: type[BaseModel]
    """Has ``total``, ``items`` and ``continue``."""


def first_page_range(since: str | None, until: str | None, now: datetime) -> tuple[str | None, str | None]:
    """The range of time in RFC 3339. Raises ``BadRequestError`` for an empty one."""
    start, end = (parse_time(text, now) if text else None for text in (since, until))
    if start and end and start >= end:
        raise BadRequestError(
            f"the range is empty: since ({format_rfc3339(start)}) is not before until ({format_rfc3339(end)})",
            "Give the earlier time as since; durations such as 2h count back from now.",
        )
    return (format_rfc3339(start) if start else None), (format_rfc3339(end) if end else None)


def first_page(position_type: type[P], since: str | None, until: str | None, now: datetime) -> P:
    """The position of the first page. Raises ``BadRequestError`` for an empty range."""
    start, end = first_page_range(since, until, now)
    return position_type(sort=None, total=0, since=start, until=end)


def page_body(source: ListSource, clauses: Sequence[Json], position: PagePosition[Any], limit: int) -> Json:
    """The body of a search for one page and one item more, whose presence shows that there is a next page."""
    body: Json = {
        "query": all_of(clauses),
        "sort": list(source.sort),
        "size": limit + 1,
        "_source": source.source,
    }
    if position.sort:
        # Without the total, shards that end before the position are not searched.
        return body | {"search_after": list(position.sort), "track_total_hits": False}
    # Exactly, since clients show it as the length of the list; OpenSearch stops counting at 10,000 otherwise.
    body["track_total_hits"] = True
    return body | ({"aggs": source.counts} if source.counts else {})

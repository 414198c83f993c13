"""Long lists from the index in pages, latest first: the questions, and the places where pages begin. Pure.

Most lists end with their first page, and a node keeps no more than 300 points in time open; so the index is held still
from the second page on only. What is written before the second page is asked for stands before its place, or is as old
as what stands behind it: nothing is shown twice or left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from api.http.continue_token import Position
from api.http.errors import BadRequestError
from api.http.query_params import moment
from schemas.codec.records import rfc3339

Json = dict[str, Any]
Sort = TypeVar("Sort", bound=tuple[int | str, ...])
P = TypeVar("P", bound="PagePosition[Any]")

KEEP_ALIVE: Final = "5m"
"""How long a point in time is kept after each page."""


class PagePosition(Position, Generic[Sort]):
    """Behind ``sort`` the next page begins; ``Sort`` is what the list is sorted by.

    ``pit`` holds the index still from the second page on; until then it is None. ``since`` and ``until`` are what
    durations meant at the first page.
    """

    pit: str | None
    sort: Sort | None
    since: str | None
    until: str | None


@dataclass(frozen=True, slots=True)
class Kind:
    """What a list is read from, and in which order."""

    alias: str
    sort: Sequence[Json]
    """Unique, the same on every shard, and never changed by a later telling."""
    source: object
    """The fields of a document that are wanted."""


def by(field: str, order: str = "asc", kind: str = "keyword") -> Json:
    """One entry of ``sort``. Before the first document there is no mapping that could say ``kind``."""
    return {field: {"order": order, "unmapped_type": kind}}


def latest_by(field: str) -> Json:
    return by(field, "desc", "date")


def term(field: str, value: str) -> Json:
    return {"term": {field: value}}


def all_of(clauses: Sequence[Json]) -> Json:
    return {"bool": {"filter": list(clauses)}}


def terms_of(fields: Mapping[str, str | None]) -> list[Json]:
    """A condition for every field that something was asked for."""
    return [term(field, value) for field, value in fields.items() if value is not None]


def between(field: str, within: PagePosition[Any]) -> list[Json]:
    """``since`` or later, and before ``until``."""
    bounds = (("gte", within.since), ("lt", within.until))
    return [{"range": {field: {word: when}}} for word, when in bounds if when]


def first_page(kind: type[P], since: str | None, until: str | None, now: datetime) -> P:
    """Raises ``BadRequestError`` for a range in which nothing can lie."""
    begin, end = (moment(said, now) if said else None for said in (since, until))
    if begin and end and begin >= end:
        said = f"nothing lies between {rfc3339(begin)} and {rfc3339(end)}: the range ends before it begins"
        raise BadRequestError(said, "Give the earlier time first; durations such as 2h count back from now.")
    return kind(pit=None, sort=None, since=begin and rfc3339(begin), until=end and rfc3339(end))


def page_body(kind: Kind, clauses: Sequence[Json], position: PagePosition[Any], limit: int) -> Json:
    """One more than was asked for, so that its presence tells whether there is a next page."""
    body = {
        "query": all_of(clauses),
        "sort": list(kind.sort),
        "size": limit + 1,
        "_source": kind.source,
        "track_total_hits": True,
    }
    if position.pit:
        body["pit"] = {"id": position.pit, "keep_alive": KEEP_ALIVE}
    if position.sort:
        body["search_after"] = list(position.sort)
    return body

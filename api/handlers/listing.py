"""Answers a list: reads one page of it from the index, and says where the next one begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from api.http.continue_token import seal
from api.http.errors import json_response, unreadable
from api.http.pagination import TOTAL, next_page, position_of, question
from api.http.query_params import RangeQuery
from api.index.client import IndexDownError, OpenSearch, PointInTimeGoneError
from api.index.query_dsl import KEEP_ALIVE, Kind, PagePosition, first_page, page_body

Json = dict[str, Any]
P = TypeVar("P", bound=PagePosition[Any])


@dataclass(frozen=True, slots=True)
class Page(Generic[P]):
    total: int
    hits: list[Json]
    following: P | None
    """Where the next page begins; None after the last one."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[P]):
    name: str
    """A token of one list is none of another's."""
    kind: Kind
    position: type[P]
    item: Callable[[Json], BaseModel]
    """From a hit to what is said about it."""
    answer: type[BaseModel]
    """Has ``total``, ``items`` and ``continue``."""


async def listed(
    index: OpenSearch,
    request: Request,
    listing: Listing[P],
    query: RangeQuery,
    conditions: Callable[[P], list[Json]],
    **about: str,
) -> tuple[Page[P], Response]:
    """The page, and the answer that holds it. ``about`` are the path's parameters; ``conditions`` knows the range."""
    asked = question(listing.name, query, **about)
    place = position_of(query.continue_, asked, listing.position)
    place = place or first_page(listing.position, query.since, query.until, datetime.now(UTC))
    page = await read_page(index, listing.kind, conditions(place), place, query.limit)
    token = seal(asked, page.following) if page.following else None
    items = [_item(listing, hit) for hit in page.hits]
    body = listing.answer.model_validate({"total": page.total, "items": items, "continue": token})
    return page, json_response(200, body, next_page(request, token) | {TOTAL: str(page.total)})


def _item(listing: Listing[Any], hit: Json) -> BaseModel:
    try:
        return listing.item(hit)
    except (KeyError, ValidationError) as error:
        raise unreadable(hit["_id"], f"{type(error).__name__}: {error}"[:300]) from None


async def read_page(index: OpenSearch, kind: Kind, clauses: Sequence[Json], position: P, limit: int) -> Page[P]:
    if position.sort and not position.pit:
        pit = await index.open_point_in_time(kind.alias, KEEP_ALIVE)
        position = position.model_copy(update={"pit": pit})
    answer = await index.search(kind.alias, page_body(kind, clauses, position, limit))
    hits = answer["hits"]["hits"]
    page = hits[:limit]
    following = None
    if len(hits) > len(page):
        place = {"sort": tuple(page[-1]["sort"]), "pit": answer.get("pit_id", position.pit)}
        following = position.model_copy(update=place)
    elif position.pit:
        await _close(index, position.pit)
    return Page(answer["hits"]["total"]["value"], page, following)


async def _close(index: OpenSearch, pit: str) -> None:
    try:
        await index.close_point_in_time(pit)
    except (IndexDownError, PointInTimeGoneError):
        return  # it expires by itself

"""Reads one page of a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from api.index.reading.client import OpenSearch
from api.index.reading.page_query import ListSource, PagePosition, page_body
from schemas.json_types import Json

P = TypeVar("P", bound=PagePosition[Any])


@dataclass(frozen=True, slots=True)
class Page(Generic[P]):
    total: int
    """How many items the whole list had at its first page."""
    hits: list[Json]
    next_position: P | None
    """Where the next page begins; None after the last one."""
    counts: Json | None = None
    """What ``ListSource.counts`` asks for; None after the first page."""


async def read_page(index: OpenSearch, source: ListSource, clauses: Sequence[Json], position: P, limit: int) -> Page[P]:
    """At most ``limit`` hits that meet all ``clauses``, from ``position`` on. Raises as ``OpenSearch.search``."""
    answer = await index.search(source.alias, page_body(source, clauses, position, limit))
    hits = answer["hits"]["hits"]
    page = hits[:limit]
    total = position.total if position.sort else answer["hits"]["total"]["value"]
    next_position = None
    if len(hits) > len(page):
        next_position = position.model_copy(update={"sort": tuple(page[-1]["sort"]), "total": total})
    return Page(total, page, next_position, answer.get("aggregations"))

"""Reads one page of a list, with a point in time from the second page on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from api.index.client import IndexDownError, OpenSearch, PointInTimeGoneError
from api.index.page_query import KEEP_ALIVE, ListSource, PagePosition, page_body
from api.index.query_dsl import Json

P = TypeVar("P", bound=PagePosition[Any])


@dataclass(frozen=True, slots=True)
class Page(Generic[P]):
    total: int
    """How many items the whole list has."""
    hits: list[Json]
    next_position: P | None
    """Where the next page begins; None after the last one."""
    counts: Json | None = None
    """What ``ListSource.counts`` asks for; None after the first page."""


async def read_page(index: OpenSearch, source: ListSource, clauses: Sequence[Json], position: P, limit: int) -> Page[P]:
    """At most ``limit`` hits that meet all ``clauses``, from ``position`` on.

    Opens a point in time for the second page and closes it with the last one. Raises what ``OpenSearch.search`` raises.
    """
    if position.sort and not position.pit:
        pit = await index.open_point_in_time(source.alias, KEEP_ALIVE)
        position = position.model_copy(update={"pit": pit})
    answer = await index.search(source.alias, page_body(source, clauses, position, limit))
    hits = answer["hits"]["hits"]
    page = hits[:limit]
    next_position = None
    if len(hits) > len(page):
        # OpenSearch may answer with another id for the same point in time; the latest one counts.
        update = {"sort": tuple(page[-1]["sort"]), "pit": answer.get("pit_id", position.pit)}
        next_position = position.model_copy(update=update)
    # Closed at once and not after `KEEP_ALIVE`: a node of OpenSearch allows only 300 open ones.
    elif position.pit:
        await _close(index, position.pit)
    return Page(answer["hits"]["total"]["value"], page, next_position, answer.get("aggregations"))


async def _close(index: OpenSearch, pit: str) -> None:
    try:
        await index.close_point_in_time(pit)
    except (IndexDownError, PointInTimeGoneError):
        # The page itself was read; a point in time that is not closed expires after ``KEEP_ALIVE``.
        return

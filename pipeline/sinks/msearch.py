"""What the index is asked by ``_msearch``, and how a long answer is read page by page."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from schemas.indices import Index

Search = tuple[dict[str, Any], dict[str, Any]]
"""Header and body of ``_msearch``."""
Hits = list[dict[str, Any]]


class Searchable(Protocol):
    async def search(self, questions: Sequence[Search]) -> list[Hits]:
        """The hits of each question."""


def in_indices(*names: str) -> dict[str, Any]:
    """The header of a question to indices or aliases; those that are not there have no hits."""
    return {"index": list(names), "ignore_unavailable": True, "allow_no_indices": True}


def by_time(order: str) -> dict[str, Any]:
    return {"@timestamp": {"order": order, "unmapped_type": "date"}}


def page_search(
    index: Index, filters: Sequence[Any], tie: str, size: int, after: list[Any] | None, **how: Any
) -> Search:
    """Hits by time, and by the keyword ``tie`` where that is the same, behind the one that is sorted as ``after``."""
    order = [by_time("asc"), {tie: {"order": "asc", "unmapped_type": "keyword"}}]
    body = {"query": {"bool": {"filter": filters}}, "sort": order, "size": size, "track_total_hits": False, **how}
    return in_indices(index.alias), body | ({"search_after": after} if after else {})


async def pages(index: Searchable, size: int, ask: Callable[[list[Any] | None], Search]) -> AsyncIterator[Hits]:
    """All hits of a question that is asked in ``page``s of this size."""
    after: list[Any] | None = None
    while True:
        (hits,) = await index.search([ask(after)])
        yield hits
        if len(hits) < size:
            return
        after = hits[-1]["sort"]

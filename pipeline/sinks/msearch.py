"""Searches for ``_msearch``, and long answers read page by page. Pure."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol

from schemas.index_family import Index

Search = tuple[dict[str, Any], dict[str, Any]]
"""Header and body of one search in ``_msearch``."""
Hits = list[dict[str, Any]]


class Searchable(Protocol):
    """An index that answers searches."""

    async def search(self, searches: Sequence[Search]) -> list[Hits]:
        """Return the hits of each search."""


def select_indices(*names: str) -> dict[str, Any]:
    """Make the header of a search in indices or aliases; missing ones have no hits."""
    return {"index": list(names), "ignore_unavailable": True, "allow_no_indices": True}


def sort_by_time(order: str) -> dict[str, Any]:
    """Make a clause of ``sort``; ``order`` is asc or desc."""
    # Without `unmapped_type` an index without documents, and so without the field, fails the search.
    return {"@timestamp": {"order": order, "unmapped_type": "date"}}


def search_page(
    index: Index, filters: Sequence[Any], tiebreakers: Sequence[str], size: int, after: list[Any] | None, **options: Any
) -> Search:
    """Make the search for a page of hits by time, and by the keywords ``tiebreakers`` where the time is the same.

    The page begins behind the hit whose ``sort`` is ``after``; None for the first one. ``options`` go into the body.
    """
    # `search_after` skips hits of equal sort values, so these have to be unique; `_shard_doc`, which would be, exists
    # only from OpenSearch 3.3 on.
    order = [sort_by_time("asc"), *({name: {"order": "asc", "unmapped_type": "keyword"}} for name in tiebreakers)]
    body = {"query": {"bool": {"filter": filters}}, "sort": order, "size": size, "track_total_hits": False, **options}
    return select_indices(index.alias), body | ({"search_after": after} if after else {})


async def iterate_pages(
    index: Searchable, size: int, search_after: Callable[[list[Any] | None], Search]
) -> AsyncIterator[Hits]:
    """Yield all hits, page by page. ``search_after`` makes the ``search_page`` of this ``size`` behind a hit."""
    after: list[Any] | None = None
    while True:
        (hits,) = await index.search([search_after(after)])
        yield hits
        if len(hits) < size:
            return
        after = hits[-1]["sort"]

"""Deletion of the documents that a query matches. Deleted ones cost the index a merge before they free the disk."""

from typing import Any, Final

from opensearchpy import AsyncOpenSearch

_PARAMS: Final = {
    "ignore_unavailable": "true",
    "allow_no_indices": "true",
    # A document that is written meanwhile would end the request.
    "conflicts": "proceed",
    # OpenSearch answers with a header for each of its batches, and clients take 128 headers: with batches of 1,000, as
    # usual, an answer about 124,000 documents could not be read. What is more than this is left to the next run.
    "scroll_size": 10_000,
    "max_docs": 1_000_000,
    "request_timeout": 900,
}


async def delete_documents(store: AsyncOpenSearch, pattern: str, query: dict[str, Any]) -> int:
    """Delete the matching documents of the indices; return their number. Raises ``TransportError``."""
    path = f"/{pattern}/_delete_by_query"
    # The client takes its own time-out out of the parameters.
    answer = await store.transport.perform_request("POST", path, params=dict(_PARAMS), body={"query": query})
    return int(answer["deleted"])

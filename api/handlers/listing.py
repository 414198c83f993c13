"""One page of a list: read from the index, with the token of the next page."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.http.cluster import Cluster
from api.http.errors import to_json_response, to_unreadable_error
from api.http.pagination import TOTAL_HEADER, derive_token_scope, encode_token, link_next_page, parse_position
from api.http.query_params import RangeQuery
from api.index.reading.client import OpenSearch
from api.index.reading.pages import ListDefinition, Page, PagePosition, build_first_position, read_page
from api.index.reading.query_dsl import match_cluster
from schemas.json_types import Json

P = TypeVar("P", bound=PagePosition[Any])
Item = TypeVar("Item", bound=BaseModel)


Redact = Callable[[Sequence[Any]], Awaitable[Sequence[BaseModel]]]
"""Redacts the items of a page for the caller."""


async def return_unredacted(items: Sequence[BaseModel]) -> Sequence[BaseModel]:
    """Return the items unchanged, because every caller of the list may see all of them."""
    return items


async def answer_page(
    index: OpenSearch,
    request: Request,
    cluster: Cluster,
    definition: ListDefinition[P],
    query: RangeQuery,
    filters: Callable[[P], list[Json]],
    redact: Redact = return_unredacted,
    **path_parameters: str,
) -> tuple[Page[P], Response]:
    """Read the page and build its response.

    ``filters`` builds the clauses of the search, in addition to that of the cluster, from the position with its range
    of time; ``redact`` hides parts of the items. Raises ``BadRequestError``, ``UnreadableError`` and what
    ``OpenSearch.search`` raises.
    """
    scope = derive_token_scope(
        get_access(request).caller_name, definition.name, query, cluster=cluster.name, **path_parameters
    )
    position = parse_position(query.continue_, scope, definition.position_type)
    position = position or build_first_position(definition.position_type, query.since, query.until, datetime.now(UTC))
    # The token carries the position, so that only the first page resolves a range such as "2h".
    page = await read_page(
        index, definition.source, [match_cluster(cluster.name), *filters(position)], position, query.limit
    )
    token = encode_token(scope, page.next_position) if page.next_position else None
    items = [convert_hit(hit, partial(definition.item, cluster)) for hit in page.hits]
    body = definition.answer_type.model_validate({"total": page.total, "items": await redact(items), "continue": token})
    headers = link_next_page(request, token) | {TOTAL_HEADER: str(page.total)}
    return page, to_json_response(200, body, headers)


def convert_hit(hit: Json, item: Callable[[Json], Item]) -> Item:
    """Convert the hit by ``item``. Raises ``UnreadableError`` for a document that it can't read."""
    try:
        return item(hit)
    except (KeyError, ValidationError) as error:
        # Otherwise a foreign document would look like a defect of the API, without its id.
        raise to_unreadable_error(hit["_id"], f"{type(error).__name__}: {error}"[:300]) from None

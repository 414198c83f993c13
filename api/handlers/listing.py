"""Answers one page of a list: reads it from the index and adds the token of the next page."""

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


Shown = Callable[[Sequence[Any]], Awaitable[Sequence[BaseModel]]]
"""What the caller sees of the items of a page."""


async def as_they_are(items: Sequence[BaseModel]) -> Sequence[BaseModel]:
    """The items; every caller of the list sees all of them."""
    return items


async def answer_page(
    index: OpenSearch,
    request: Request,
    cluster: Cluster,
    definition: ListDefinition[P],
    query: RangeQuery,
    filters: Callable[[P], list[Json]],
    shown: Shown = as_they_are,
    **path_parameters: str,
) -> tuple[Page[P], Response]:
    """The page, and the response that holds it.

    ``filters`` makes the clauses of the search, beside that of the cluster, from the position, which has the range
    of time; ``shown`` is what the caller sees of the items. Raises ``BadRequestError``, ``UnreadableError`` and what
    ``OpenSearch.search`` raises.
    """
    scope = derive_token_scope(
        get_access(request).caller_name, definition.name, query, cluster=cluster.name, **path_parameters
    )
    position = parse_position(query.continue_, scope, definition.position_type)
    position = position or build_first_position(definition.position_type, query.since, query.until, datetime.now(UTC))
    # The position is also what the token carries: a range such as "2h" is resolved at the first page only.
    page = await read_page(
        index, definition.source, [match_cluster(cluster.name), *filters(position)], position, query.limit
    )
    token = encode_token(scope, page.next_position) if page.next_position else None
    items = [item_of(hit, partial(definition.item, cluster)) for hit in page.hits]
    body = definition.answer_type.model_validate({"total": page.total, "items": await shown(items), "continue": token})
    headers = link_next_page(request, token) | {TOTAL_HEADER: str(page.total)}
    return page, to_json_response(200, body, headers)


def item_of(hit: Json, item: Callable[[Json], Item]) -> Item:
    """``item`` of the hit. Raises ``UnreadableError`` for a document that it can't read."""
    try:
        return item(hit)
    except (KeyError, ValidationError) as error:
        # Without this a foreign document would be answered as a defect of the API, without its id.
        raise to_unreadable_error(hit["_id"], f"{type(error).__name__}: {error}"[:300]) from None

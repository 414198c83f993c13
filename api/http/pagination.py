"""Pages over HTTP: reads the token of a request, and writes the headers that lead to the next page."""

from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel
from starlette.requests import Request

from api.http.continue_token import BadToken, Position, decode_token
from api.http.errors import BadRequestError

P = TypeVar("P", bound=Position)

TOTAL_HEADER: Final = "X-Total-Count"
CONTINUE_HEADER: Final = "X-Continue"
ASKED_STATE: Final = "asked"
"""The entry of a request's state with path and query as they were sent, where it was translated since."""


def token_scope(caller: str, list_name: str, query: BaseModel, **path_parameters: str) -> dict[str, Any]:
    """What has to stay the same from page to page: caller, list, and parameters but ``limit`` and ``continue``."""
    return {"caller": caller, "list": list_name} | path_parameters | query.model_dump(exclude={"limit", "continue_"})


def requested_position(token: str | None, scope: dict[str, Any], position_type: type[P]) -> P | None:
    """Where the requested page begins; None for the first page. Raises ``BadRequestError`` for a wrong token."""
    if token is None:
        return None
    position = decode_token(token, scope, position_type)
    if isinstance(position, BadToken):
        raise BadRequestError(f"parameter continue: {position.cause}", "Ask for the first page, without continue.")
    return position


def next_page_headers(request: Request, token: str | None) -> dict[str, str]:
    """Headers of an answer with a next page: the token alone, and the whole link to it. Empty on the last page."""
    if token is None:
        return {}
    path, query = request.scope["state"].get(ASKED_STATE) or (request.url.path, request.url.query)
    # As a list of pairs: ``node`` may be repeated.
    kept = [(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if key != "continue"]
    link = f"{path}?{urlencode([*kept, ('continue', token)])}"
    return {CONTINUE_HEADER: token, "Link": f'<{link}>; rel="next"'}

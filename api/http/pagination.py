"""From one page to the next over HTTP: the token that comes in, and the headers that lead on."""

from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel

from api.http.continue_token import BadToken, Position, unseal
from api.http.errors import BadRequestError

P = TypeVar("P", bound=Position)

TOTAL: Final = "X-Total-Count"
CONTINUE: Final = "X-Continue"


def question(at: str, query: BaseModel, **about: str) -> dict[str, Any]:
    """What has to stay the same from page to page: everything but where it goes on and how far."""
    return {"at": at} | about | query.model_dump(exclude={"limit", "continue_"})


def position_of(token: str | None, asked: dict[str, Any], kind: type[P]) -> P | None:
    """Where ``asked`` goes on; None for the first page. Raises ``BadRequestError``."""
    if token is None:
        return None
    position = unseal(token, asked, kind)
    if isinstance(position, BadToken):
        raise BadRequestError(f"parameter continue: {position.cause}", "Ask for the first page, without continue.")
    return position


def next_page(request: Request, token: str | None) -> dict[str, str]:
    """Headers that lead to the next page: the token alone, and a link that holds it."""
    if token is None:
        return {}
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "continue"]
    link = f"{request.url.path}?{urlencode([*kept, ('continue', token)])}"
    return {CONTINUE: token, "Link": f'<{link}>; rel="next"'}

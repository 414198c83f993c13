"""Pages over HTTP: the tokens that continue a list, and the headers that lead to its next page.

A token is opaque. It holds a position and a digest of the request that it belongs to (so that it can't continue another
request), and is encrypted with a key, which also proves that this API made it. It grants nothing: the API asks for the
caller's rights again for each page. Without authentication there is no key, because replicas would have to share it.
Then anybody can make a token, so each field of a position is checked as a parameter is, and says no more than
parameters could.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

import orjson
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from api.http.errors import BadRequestError
from api.http.sealing import SEAL, decode_base64, encode_base64

VERSION: Final = 4
MAX_CHARACTERS: Final = 16_384
"""Longer tokens are refused before they are decoded."""


P = TypeVar("P", bound="Position")


class Position(BaseModel):
    """Beginning of a page. Each list has a subclass with the fields that it needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class BadToken:
    """Reason why a text is not a token of this request."""

    cause: str


_MALFORMED: Final = BadToken("it was not issued by this API, or it is truncated")


def encode_token(scope: Mapping[str, object], position: Position) -> str:
    """Encode ``position`` as a URL-safe token that continues the request ``scope``.

    ``scope`` (JSON values) names everything that has to stay the same from page to page, as ``derive_token_scope``
    returns it.
    """
    # Compressed, because tokens travel in URLs.
    payload = zlib.compress(orjson.dumps([VERSION, _digest(scope), position.model_dump()]))
    return encode_base64(SEAL.encrypt(payload))


def decode_token(token: str, scope: Mapping[str, object], position_type: type[P]) -> P | BadToken:
    """Decode the position that ``encode_token`` encoded for the same ``scope``."""
    sealed = decode_base64(token) if len(token) <= MAX_CHARACTERS else None
    payload = SEAL.decrypt(sealed) if sealed else None
    if payload is None:
        return _MALFORMED
    try:
        version, digest, position = orjson.loads(_decompress(payload))
        if version != VERSION:
            return BadToken("it was issued by another version of this API")
        if digest != _digest(scope):
            return BadToken("it belongs to another request: repeat the path and parameters of the page before")
        return position_type.model_validate(position)
    except (zlib.error, ValueError, TypeError):
        return _MALFORMED


def _decompress(payload: bytes) -> bytes:
    # Bounded, because without a key anybody can seal a decompression bomb.
    return zlib.decompressobj().decompress(payload, MAX_CHARACTERS)


def _digest(scope: Mapping[str, object]) -> str:
    return blake2b(orjson.dumps(scope, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


TOTAL_HEADER: Final = "X-Total-Count"
CONTINUE_HEADER: Final = "X-Continue"
ORIGINAL_STATE: Final = "asked"
"""Entry of a request's state with path and query as the client sent them, if middleware translated them."""


def derive_token_scope(caller: str, list_name: str, query: BaseModel, **path_parameters: str) -> dict[str, Any]:
    """Derive what stays the same from page to page: caller, list, and parameters except ``limit`` and ``continue``."""
    return {"caller": caller, "list": list_name} | path_parameters | query.model_dump(exclude={"limit", "continue_"})


def parse_position(token: str | None, scope: dict[str, Any], position_type: type[P]) -> P | None:
    """Parse where the requested page begins; None for the first page. Raises ``BadRequestError`` for a wrong token."""
    if token is None:
        return None
    position = decode_token(token, scope, position_type)
    if isinstance(position, BadToken):
        raise BadRequestError(f"parameter continue: {position.cause}", "Ask for the first page, without continue.")
    return position


def link_next_page(request: Request, token: str | None) -> dict[str, str]:
    """Build the headers that lead to the next page: its token, and a link with the token. Empty on the last page."""
    if token is None:
        return {}
    path, query = request.scope["state"].get(ORIGINAL_STATE) or (request.url.path, request.url.query)
    # As a list of pairs: ``node`` may be repeated.
    parameters = [(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if key != "continue"]
    link = f"{path}?{urlencode([*parameters, ('continue', token)])}"
    return {CONTINUE_HEADER: token, "Link": f'<{link}>; rel="next"'}

"""Pages over HTTP: the tokens that continue a list, and the headers that lead to its next page.

A token is opaque. It holds a position, a digest of the request that it belongs to (so that it can't continue another
request), and a seal: a checksum with a key, which proves that this API made the token. It grants nothing: the API asks
for the caller's rights again for each page. Without authentication there is no key, because replicas would have to
share it. Then anybody can make a token, so each field of a position is checked as a parameter is, and says no more than
parameters could.
"""

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

import orjson
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from api.http.errors import BadRequestError

VERSION: Final = 3
MAX_CHARACTERS: Final = 16_384
"""Longer tokens are refused before they are decoded."""
_SEAL_BYTES: Final = 16


P = TypeVar("P", bound="Position")


class Seal:
    """Key with which this process seals tokens."""

    def __init__(self) -> None:
        self.read_key: Callable[[], bytes] = bytes
        """Empty by default: where every caller may read everything, a forged token reveals nothing."""


SEAL: Final = Seal()


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
    return base64.urlsafe_b64encode(_seal(payload) + payload).decode().rstrip("=")


def decode_token(token: str, scope: Mapping[str, object], position_type: type[P]) -> P | BadToken:
    """Decode the position that ``encode_token`` encoded for the same ``scope``."""
    raw = _decode_base64(token)
    if raw is None or not compare_digest(_seal(raw[_SEAL_BYTES:]), raw[:_SEAL_BYTES]):
        return _MALFORMED
    try:
        version, digest, position = orjson.loads(_decompress(raw[_SEAL_BYTES:]))
        if version != VERSION:
            return BadToken("it was issued by another version of this API")
        if digest != _digest(scope):
            return BadToken("it belongs to another request: repeat the path and parameters of the page before")
        return position_type.model_validate(position)
    except (zlib.error, ValueError, TypeError):
        return _MALFORMED


def _decode_base64(token: str) -> bytes | None:
    if len(token) > MAX_CHARACTERS:
        return None
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def _decompress(payload: bytes) -> bytes:
    # Bounded, because without a key anybody can seal a decompression bomb.
    return zlib.decompressobj().decompress(payload, MAX_CHARACTERS)


def _seal(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=_SEAL_BYTES, key=SEAL.read_key()).digest()


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

"""Encodes where the next page begins as an opaque, checked token.

A token holds a position, a digest of the request that it belongs to (so that it can't continue another one), and a
seal: a checksum with a key, so that what is in a token was put in here. It grants nothing: the caller's rights are
asked for each page. Without authentication there is no key, which replicas would have to share: anybody can make a
token, so each field of a position is checked as a parameter is, and says no more than parameters could.
"""

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict

VERSION: Final = 3
MAX_CHARACTERS: Final = 16_384
"""Longer tokens are refused before they are decoded."""
_SEAL_BYTES: Final = 16


P = TypeVar("P", bound="Position")


class Seal:
    """The key with which this process seals tokens."""

    def __init__(self) -> None:
        self.read_key: Callable[[], bytes] = bytes
        """Empty at first: where every caller may read everything, a token can be made by who knows how."""


SEAL: Final = Seal()


class Position(BaseModel):
    """Where a page begins. Each list has a subclass with the fields that it needs."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class BadToken:
    """Why a text is not a token of this request."""

    cause: str


_MALFORMED: Final = BadToken("it was not issued by this API, or it is truncated")


def encode_token(scope: Mapping[str, object], position: Position) -> str:
    """A URL-safe token that continues the request ``scope`` at ``position``.

    ``scope`` (JSON values) names everything that has to stay the same from page to page; ``pagination.token_scope``
    makes it.
    """
    # Compressed, because tokens travel in URLs.
    payload = zlib.compress(orjson.dumps([VERSION, _digest(scope), position.model_dump()]))
    return base64.urlsafe_b64encode(_seal(payload) + payload).decode().rstrip("=")


def decode_token(token: str, scope: Mapping[str, object], position_type: type[P]) -> P | BadToken:
    """The position that ``encode_token`` put in for the same ``scope``."""
    raw = _base64_decoded(token)
    if raw is None or not compare_digest(_seal(raw[_SEAL_BYTES:]), raw[:_SEAL_BYTES]):
        return _MALFORMED
    try:
        version, digest, position = orjson.loads(_decompressed(raw[_SEAL_BYTES:]))
        if version != VERSION:
            return BadToken("it was issued by another version of this API")
        if digest != _digest(scope):
            return BadToken("it belongs to another request: repeat the path and parameters of the page before")
        return position_type.model_validate(position)
    except (zlib.error, ValueError, TypeError):
        return _MALFORMED


def _base64_decoded(token: str) -> bytes | None:
    if len(token) > MAX_CHARACTERS:
        return None
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def _decompressed(payload: bytes) -> bytes:
    # Bounded, because without a key anybody can seal a decompression bomb.
    return zlib.decompressobj().decompress(payload, MAX_CHARACTERS)


def _seal(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=_SEAL_BYTES, key=SEAL.read_key()).digest()


def _digest(scope: Mapping[str, object]) -> str:
    return blake2b(orjson.dumps(scope, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()

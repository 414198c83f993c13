"""Opaque places to continue from.

A token holds a position and a digest of what was asked, so that it can't be used for another question, and a checksum,
so that half a token is told from a whole one. It gives no rights: whoever makes one up gets a page of what the same
question would show anyway.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict

VERSION: Final = 1
MAX_CHARACTERS: Final = 16_384
_CHECK_BYTES: Final = 6


P = TypeVar("P", bound="Position")


class Position(BaseModel):
    """Where a page begins; what it holds is the asker's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class BadToken:
    """Why a text is no token for this question."""

    cause: str


_NOT_OURS: Final = BadToken("it is not one that this API gave, or a part of it is missing")


def seal(question: Mapping[str, object], position: Position) -> str:
    """The token that continues ``question`` (anything JSON can say) behind ``position``."""
    said = zlib.compress(orjson.dumps([VERSION, _digest(question), position.model_dump()]))
    return base64.urlsafe_b64encode(_check(said) + said).decode().rstrip("=")


def unseal(token: str, question: Mapping[str, object], kind: type[P]) -> P | BadToken:
    """The position that ``seal`` put in for the same question."""
    raw = _raw(token)
    if raw is None or _check(raw[_CHECK_BYTES:]) != raw[:_CHECK_BYTES]:
        return _NOT_OURS
    try:
        version, asked, position = orjson.loads(_unpacked(raw[_CHECK_BYTES:]))
        if version != VERSION:
            return BadToken("it was given by another version of this API")
        if asked != _digest(question):
            return BadToken("it belongs to another question: give the same parameters as for the page before")
        return kind.model_validate(position)
    except (zlib.error, ValueError, TypeError):
        return _NOT_OURS


def _raw(token: str) -> bytes | None:
    if len(token) > MAX_CHARACTERS:
        return None
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def _unpacked(said: bytes) -> bytes:
    # Bounded: somebody could compute the checksum of a bomb.
    return zlib.decompressobj().decompress(said, MAX_CHARACTERS)


def _check(said: bytes) -> bytes:
    return blake2b(said, digest_size=_CHECK_BYTES).digest()


def _digest(question: Mapping[str, object]) -> str:
    return blake2b(orjson.dumps(question, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()

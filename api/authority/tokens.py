"""The bearer token of a request (RFC 6750), and when it ends. Pure."""

import base64
import binascii
import string
from collections.abc import Sequence
from typing import Final

import orjson

MAX_CHARACTERS: Final = 16_384
"""Longer tokens are refused before they are looked at; those of service accounts have about 1,200."""

_SCHEME: Final = b"bearer "
_CHARACTERS: Final = string.ascii_letters.encode() + string.digits.encode() + b"-._~+/"


class TooLongError(ValueError):
    """The token is longer than any that a cluster issues."""


def bearer_token(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """The token of the one ``Authorization`` header; None where there is none, or another scheme, or two headers.

    Raises ``TooLongError``.
    """
    values = [value for name, value in headers if name.lower() == b"authorization"]
    if any(len(value) > MAX_CHARACTERS for value in values):
        raise TooLongError
    value = values[0].strip() if len(values) == 1 else b""
    token = value[len(_SCHEME) :].lstrip(b" ") if value[: len(_SCHEME)].lower() == _SCHEME else b""
    # What is left without the allowed characters; for a thousand of them a regular expression takes five times as long.
    is_token = token.rstrip(b"=") and not token.rstrip(b"=").translate(None, _CHARACTERS)
    return token.decode() if is_token else None


def expires_at(token: str) -> float:
    """When the token ends by its own words, in seconds since 1970; infinity for one that does not say it.

    The signature is the API server's to check: a forged end makes only its own token end.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return float("inf")
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError, OverflowError):
        return float("inf")

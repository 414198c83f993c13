"""Callers, and the credentials that they present: client certificates and bearer tokens (RFC 6750). Pure.

In a certificate, CN is the user and each O a group, as Kubernetes reads it. The handshake has checked its signature,
authority, times and purpose.
"""

import base64
import binascii
import ssl
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.types import Scope

from api.http.json_protocol import CLIENT_CERTIFICATE, CLIENT_ROOT


@dataclass(frozen=True, slots=True)
class Caller:
    """User as Kubernetes knows them: their name, and the attributes that also decide about their rights."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


AUTHENTICATED: Final = "system:authenticated"
"""Group of every known caller; the API server adds it to the groups of callers that it identifies."""


@dataclass(frozen=True, slots=True)
class PresentedCertificate:
    """Certificate that the client of a connection presented in its handshake."""

    fields: Mapping[str, Any]
    """Fields as ``SSLObject.getpeercert`` returns them."""
    root: bytes
    """Certificate of the authority by which the handshake checked it, in DER form."""

    @property
    def common_name(self) -> str:
        """Common name; empty if there is none or several."""
        names = self.list_subject_values("commonName")
        return names[0] if len(names) == 1 else ""

    @property
    def ends_at(self) -> float:
        """End of its validity, in seconds since 1970."""
        return ssl.cert_time_to_seconds(self.fields["notAfter"])

    def list_subject_values(self, kind: str) -> list[str]:
        return [value for part in self.fields.get("subject", ()) for name, value in part if name == kind]


def get_client_certificate(scope: Scope) -> PresentedCertificate | None:
    """Return the certificate that the client of the connection presented; None without one."""
    extensions = scope.get("extensions", {})
    fields = extensions.get(CLIENT_CERTIFICATE)
    return PresentedCertificate(fields, extensions[CLIENT_ROOT]) if fields else None


def derive_caller(certificate: PresentedCertificate, now: float) -> Caller | None:
    """Return the caller that a certificate names; None if it names no user or several, or has ended by ``now``.

    ``now`` is in seconds since 1970.
    """
    if not certificate.common_name or certificate.ends_at <= now:
        return None
    groups = dict.fromkeys([*certificate.list_subject_values("organizationName"), AUTHENTICATED])
    return Caller(certificate.common_name, groups=tuple(groups))


MAX_CHARACTERS: Final = 16_384
"""Maximum length of a token; longer ones are refused unread. Tokens of service accounts have about 1,200."""

_SCHEME: Final = b"bearer "
_CHARACTERS: Final = string.ascii_letters.encode() + string.digits.encode() + b"-._~+/"


class TooLongError(ValueError):
    """Refusal of a token that is longer than any that a cluster issues."""


def parse_bearer_token(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Parse the token of the header ``Authorization``; None without it, with two of them, or with another scheme.

    Raises ``TooLongError``.
    """
    values = [value for name, value in headers if name.lower() == b"authorization"]
    if any(len(value) > MAX_CHARACTERS for value in values):
        raise TooLongError
    value = values[0].strip() if len(values) == 1 else b""
    token = value[len(_SCHEME) :].lstrip(b" ") if value[: len(_SCHEME)].lower() == _SCHEME else b""
    # Deletes the allowed characters: for a thousand of them, a regular expression takes five times as long.
    is_token = token.rstrip(b"=") and not token.rstrip(b"=").translate(None, _CHARACTERS)
    return token.decode() if is_token else None


def read_claims(token: str) -> Mapping[str, Any]:
    """Read what the token says of itself; empty if it is none that says anything. Only signatures prove it."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def read_expiry(token: str) -> float:
    """Read when the token says that it ends, in seconds since 1970; infinity if it does not say it.

    Only the API server checks the signature: a forged end can only end its own token.
    """
    try:
        return float(read_claims(token)["exp"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return float("inf")

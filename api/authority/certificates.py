"""The client certificate of a connection, and the caller that it names as Kubernetes reads it. Pure.

CN is the user, each O a group. The certificate's signature, authority, times and purpose were checked by the handshake.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Scope

from api.authority.caller import Caller
from api.http.json_protocol import CLIENT_CERTIFICATE, CLIENT_ROOT

AUTHENTICATED: Final = "system:authenticated"
"""The group of every caller who is known; the API server adds it to those that it knows itself."""


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """What the client of a connection has shown in its handshake."""

    fields: Mapping[str, Any]
    """As ``SSLObject.getpeercert`` has them."""
    root: bytes
    """The certificate of the authority by which the handshake checked it, in DER form."""

    @property
    def common_name(self) -> str:
        """Empty for none and for several."""
        names = self.subject("commonName")
        return names[0] if len(names) == 1 else ""

    @property
    def ends_at(self) -> float:
        """In seconds since 1970."""
        return ssl.cert_time_to_seconds(self.fields["notAfter"])

    def subject(self, kind: str) -> list[str]:
        return [value for part in self.fields.get("subject", ()) for name, value in part if name == kind]


def client_certificate(scope: Scope) -> ShownCertificate | None:
    """The certificate that the client of the connection has shown; None without one."""
    extensions = scope.get("extensions", {})
    fields = extensions.get(CLIENT_CERTIFICATE)
    return ShownCertificate(fields, extensions[CLIENT_ROOT]) if fields else None


def caller_named(certificate: ShownCertificate, now: float) -> Caller | None:
    """None for a certificate that names no user or several, or that has ended since the handshake.

    ``now`` is in seconds since 1970.
    """
    if not certificate.common_name or certificate.ends_at <= now:
        return None
    groups = dict.fromkeys([*certificate.subject("organizationName"), AUTHENTICATED])
    return Caller(certificate.common_name, groups=tuple(groups))

"""The caller that a client certificate names, as Kubernetes reads it: CN is the user, each O a group. Pure.

The certificate's signature, authority, times and purpose were checked by the handshake.
"""

import ssl
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import Scope

from api.authority.caller import Caller
from api.http.json_protocol import CLIENT_CERTIFICATE

AUTHENTICATED: Final = "system:authenticated"
"""The group of every caller who is known; the API server adds it to those that it knows itself."""


def client_certificate(scope: Scope) -> Mapping[str, Any] | None:
    """The certificate that the client of the connection has shown; None without one."""
    found: Mapping[str, Any] | None = scope.get("extensions", {}).get(CLIENT_CERTIFICATE)
    return found


def caller_named(certificate: Mapping[str, Any], now: float) -> Caller | None:
    """None for a certificate that names no user or several, or that has ended since the handshake.

    ``now`` is in seconds since 1970.
    """
    fields = [field for part in certificate.get("subject", ()) for field in part]
    names = [value for name, value in fields if name == "commonName"]
    if len(names) != 1 or not names[0] or ssl.cert_time_to_seconds(certificate["notAfter"]) <= now:
        return None
    groups = dict.fromkeys([*(value for name, value in fields if name == "organizationName"), AUTHENTICATED])
    return Caller(names[0], groups=tuple(groups))

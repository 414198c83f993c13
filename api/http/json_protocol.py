"""The HTTP protocol of the API.

It answers bytes that can't be parsed as HTTP in JSON; such a request never reaches the application. A request's scope
has the certificate that its client presented, and a way to hang up at once.
"""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self

from starlette.datastructures import MutableHeaders
from starlette.types import Scope

from api.http.errors import PROBLEM, add_protection, describe_problem
from runtime.http.patient_http import PatientHttp

CLIENT_CERTIFICATE: Final = "schedulerlog.client_certificate"
"""Entry of a scope's ``extensions`` with the certificate as ``SSLObject.getpeercert`` returns it."""
CLIENT_ROOT: Final = "schedulerlog.client_root"
"""Entry of a scope's ``extensions`` with the authority by which the handshake checked the client's certificate, in
DER form."""
ABORT: Final = "schedulerlog.abort"
"""Entry of a scope's ``extensions`` with a function that hangs up at once, without waiting for a slow client."""
_NEXT: Final = {
    400: "Percent-encode all characters of the URL that are not ASCII, and speak plain HTTP, not TLS, to this port.",
    431: "Send fewer or shorter headers.",
    503: "Try again in a few seconds.",
}
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Ready:
    """Answer of status 200 as bytes. ``fields``: its headers, up to the empty line."""

    fields: bytes
    body: bytes

    @classmethod
    def from_parts(cls, headers: Headers, body: bytes) -> Self:
        return cls(encode_headers(headers) + b"\r\n", body)


FindReady = Callable[[bytes, Scope], Ready | None]
"""Finds a ready answer to GET of a path and query. The scope has the headers and extensions of the request."""


class JsonProtocol(PatientHttp):
    """uvicorn's parser with errors in JSON instead of plain text."""

    # A bearer token and a continue token have up to 16 KiB each; the API server, as a proxy, adds a header for each
    # group of its caller.
    max_head_bytes = 64 * 1024
    max_headers = 1_000

    find_ready: FindReady | None = None
    extensions: "dict[str, Any]"

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # After the handshake, which has checked the certificate: without a check ``getpeercert`` returns nothing.
        self.extensions = {ABORT: transport.abort}
        tls = transport.get_extra_info("ssl_object")
        if tls and (certificate := tls.getpeercert()):
            self.extensions |= {CLIENT_CERTIFICATE: certificate, CLIENT_ROOT: _read_root(tls)}

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = self.extensions

    def find_ready_answer(self) -> tuple[bytes, bytes] | None:
        scope: Any = self.scope
        ready = self.find_ready(self.url, scope) if self.find_ready else None
        if ready is None:
            return None
        return b"HTTP/1.1 200 OK\r\n" + encode_headers(self.server_state.default_headers) + ready.fields, ready.body

    def build_refusal(self, status: int, cause: str) -> bytes:
        body = describe_problem(status, cause, _NEXT[status]).model_dump_json().encode()
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        headers = MutableHeaders({"content-type": PROBLEM, "content-length": str(len(body)), "connection": "close"})
        add_protection(headers.raw)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{line}\r\n{fields}\r\n".encode() + body


def encode_headers(headers: Headers) -> bytes:
    """Encode headers as HTTP/1.1 sends them."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def _read_root(tls: Any) -> bytes:
    """Return the last certificate of the chain that the handshake checked, in DER form."""
    if hasattr(tls, "get_verified_chain"):  # Python 3.13 and later
        return bytes(tls.get_verified_chain()[-1])
    # Python has it since 3.10, where only its C part shows it.
    return bytes(tls._sslobj.get_verified_chain()[-1].public_bytes(ssl._ssl.ENCODING_DER))  # type: ignore[attr-defined]

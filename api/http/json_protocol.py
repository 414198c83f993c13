"""The HTTP protocol of the API.

Bytes that can't be parsed as HTTP are answered in JSON; such a request never reaches the application. A request's scope
has the certificate that its client has shown, and a way to hang up at once.
"""

import ssl
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import MutableHeaders

from api.http.errors import PROBLEM, add_protection, problem
from process.patient_http import PatientHttp

CLIENT_CERTIFICATE: Final = "schedulerlog.client_certificate"
"""The entry of a scope's ``extensions`` with the certificate as ``SSLObject.getpeercert`` gives it."""
CLIENT_ROOT: Final = "schedulerlog.client_root"
"""The entry of a scope's ``extensions`` with the authority by which the handshake has checked the client's certificate,
in DER form."""
ABORT: Final = "schedulerlog.abort"
"""The entry of a scope's ``extensions`` with what hangs up at once, without waiting for a client that does not read."""
_CAUSE: Final = "the bytes received are not a valid HTTP request"
_NEXT: Final = (
    "Percent-encode all characters of the URL that are not ASCII, and speak plain HTTP, not TLS, to this port."
)


class JsonProtocol(PatientHttp):
    """uvicorn's parser, which would answer such bytes with plain text."""

    extensions: "dict[str, Any]"

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Here, after the handshake. What it gives was checked by it: without a check it is empty.
        self.extensions = {ABORT: transport.abort}
        tls = transport.get_extra_info("ssl_object")
        if tls and (shown := tls.getpeercert()):
            self.extensions |= {CLIENT_CERTIFICATE: shown, CLIENT_ROOT: _root_of(tls)}

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = self.extensions

    def refuse_head(self) -> None:
        self._refuse(431, "the request's line and headers are too long", "Send fewer or shorter headers.")

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        self._refuse(400, _CAUSE, _NEXT)

    def _refuse(self, status: int, error: str, next_step: str) -> None:
        body = problem(status, error, next_step).model_dump_json().encode()
        line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        headers = MutableHeaders({"content-type": PROBLEM, "content-length": str(len(body)), "connection": "close"})
        add_protection(headers.raw)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        transport: Any = self.transport
        # The parser has lost the boundary between requests, so the connection can't be used again.
        transport.write(f"{line}\r\n{fields}\r\n".encode() + body)
        transport.close()


def _root_of(tls: Any) -> bytes:
    """The last certificate of the chain that the handshake has checked, in DER form."""
    if hasattr(tls, "get_verified_chain"):  # Python 3.13 and later
        return bytes(tls.get_verified_chain()[-1])
    # Python has it since 3.10, where only its C part shows it.
    return bytes(tls._sslobj.get_verified_chain()[-1].public_bytes(ssl._ssl.ENCODING_DER))  # type: ignore[attr-defined]

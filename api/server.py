"""uvicorn with a certificate that may be replaced, and the readiness of the process."""

import asyncio
import contextlib
from socket import socket
from typing import Any

import uvicorn

from api.http.json_protocol import JsonProtocol
from api.memory.attempts_consumer import TopicState
from api.settings import CERTIFICATE_VARIABLES, Settings
from runtime.errors import SettingError
from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates
from runtime.http.tls_listener import PatientServer


def load_certificates(settings: Settings) -> Certificates | None:
    """Load the certificate that the settings name; None for plain HTTP. Raises ``SettingError`` for unusable files."""
    if settings.api_cert_file is None or settings.api_key_file is None:
        return None
    try:
        files = (settings.api_cert_file, settings.api_key_file)
        pair = CertificatePair(*files, CERTIFICATE_VARIABLES, settings.api_client_ca_file, settings.api_aggregated)
        return Certificates(pair)
    except BrokenPairError as error:
        raise SettingError(str(error)) from None


class ServerWithCertificate(PatientServer):
    """uvicorn that follows the files of its certificate."""

    def __init__(self, app: Any, certificates: Certificates | None, **options: Any) -> None:
        self.app, self._certificates = app, certificates
        secured: dict[str, Any] = {"ssl_context_factory": lambda *_: certificates.context} if certificates else {}
        # No path is a WebSocket, and no connection becomes one.
        super().__init__(uvicorn.Config(app, ws="none", **secured, **options))

    def create_protocol(self) -> asyncio.Protocol:
        protocol = super().create_protocol()
        if isinstance(protocol, JsonProtocol):
            protocol.find_ready = self.app.state.ready_answer
        return protocol

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        # Watches never end by themselves: without this, every shutdown would take the maximum time.
        self.app.state.changes.close()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket] | None = None) -> None:
        following = asyncio.create_task(self._certificates.run()) if self._certificates else None
        try:
            await super().serve(sockets)
        finally:
            if following:
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following


def explain_unreadiness(topic: TopicState) -> str:
    """Explain why a kubelet should send no requests here; empty if it should.

    A store that is away is no reason: the API answers from the other store, or names the store that it waits for.
    """
    if topic.replayed or topic.trouble:
        return ""
    return "the topic of attempts is not replayed to its end yet"

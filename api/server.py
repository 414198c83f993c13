"""uvicorn with a certificate that may be replaced; and whether the process should be asked."""

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


def certificates_of(settings: Settings) -> Certificates | None:
    """None for plain HTTP. Raises ``SettingError`` for files that can't be used."""
    if settings.api_cert_file is None or settings.api_key_file is None:
        return None
    try:
        files = (settings.api_cert_file, settings.api_key_file)
        pair = CertificatePair(*files, CERTIFICATE_VARIABLES, settings.api_client_ca_file, settings.api_aggregated)
        return Certificates(pair)
    except BrokenPairError as error:
        raise SettingError(str(error)) from None


class ServerWithCertificate(PatientServer):
    """uvicorn, which follows the files of its certificate."""

    def __init__(self, app: Any, certificates: Certificates | None, **options: Any) -> None:
        self.app, self._certificates = app, certificates
        secured: dict[str, Any] = {"ssl_context_factory": lambda *_: certificates.context} if certificates else {}
        # No path is a WebSocket, and no connection becomes one.
        super().__init__(uvicorn.Config(app, ws="none", **secured, **options))

    def new_protocol(self) -> asyncio.Protocol:
        protocol = super().new_protocol()
        if isinstance(protocol, JsonProtocol):
            protocol.find_ready = self.app.state.ready_answer
        return protocol

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        # Watches never end by themselves: without it every shutdown would take as long as it may.
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


def not_ready(topic: TopicState) -> str:
    """Why a kubelet should send no requests here, in words.

    Not where a store is away: the API answers from the other one then, or says which of them it waits for.
    """
    if topic.replayed or topic.trouble:
        return ""
    return "the topic of attempts is not replayed to its end yet"

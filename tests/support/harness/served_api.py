"""The application behind the server of the API, asked over TLS by clients with certificates."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Self

import httpx

from api.authority.authorities import CONFIG_MAP, ClientAuthorities
from api.http.json_protocol import JsonProtocol
from api.server import ServerWithCertificate
from runtime.http.server_tls import CertificatePair, Certificates
from tests.support.certificates import Authority
from tests.support.harness.guarded_api import READS_LLM, Guarded

Headers = Sequence[tuple[str, str]]


class Served:
    """The application behind a server of ``pair``; ``proxy`` is what the API server publishes as a front proxy."""

    def __init__(self, pair: CertificatePair, proxy: dict[str, str] | None = None) -> None:
        self.certificates, self.proxy = Certificates(pair), proxy
        self.api = Guarded(self.certificates)
        self.reviews = self.api.reviews
        self.api.begin()
        self.reviews.grants.add(READS_LLM)
        self.authorities: ClientAuthorities = self.api.app.state.authorities
        self.authorities.config_maps = self if proxy is not None else None

    async def get(self, path: str) -> dict[str, object]:
        assert path == CONFIG_MAP
        return {"data": self.proxy}

    async def __aenter__(self) -> Self:
        await self.authorities.read()
        listening = socket.create_server(("127.0.0.1", 0))
        self._server = ServerWithCertificate(
            self.api.app, self.certificates, http=JsonProtocol, access_log=False, log_level="critical", lifespan="off"
        )
        self._running = asyncio.create_task(self._server.serve([listening]))
        self._url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._running

    async def get_status(
        self, path: str, authority: Authority, client_pair: CertificatePair | None, headers: Headers = ()
    ) -> int:
        """Return the status of the answer, 0 where the handshake is refused."""
        context = ssl.create_default_context(cafile=str(authority.ca_file))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if client_pair:
            context.load_cert_chain(client_pair.certificate, client_pair.key)
        async with httpx.AsyncClient(verify=context, trust_env=False, timeout=30) as client:
            try:
                return (await client.get(self._url + path, headers=list(headers))).status_code
            except httpx.TransportError:
                return 0

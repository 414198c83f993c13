"""uvicorn with a certificate that may be replaced, as a process or as a part of one, and its readiness."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import uvicorn

from api.app import create_app
from api.authority.authorities import describe_shared_authority
from api.authority.review_api import check
from api.http.json_protocol import JsonProtocol
from api.http.sealing import POSITION_SEAL, SEAL
from api.settings import CERTIFICATE_VARIABLES, Settings
from runtime.errors import FixedCredentialsError, SettingError
from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates
from runtime.http.tls_listener import PatientServer, allow_all_descriptors
from runtime.kubernetes.credentials import choose_loader
from runtime.kubernetes.errors import KubeConfigError
from runtime.refused_credentials import end_when_refused
from runtime.settings.addresses import HostPort
from runtime.settings.variables import derive_variable
from runtime.signals import end, run_until_cancelled
from runtime.telemetry.health import ServeHealth, report_no_problem
from runtime.telemetry.spans import Tracing

_CONNECTIONS: Final = 500
"""Connections of callers that do not watch."""
SHUTDOWN_SECONDS: Final = 5
"""Limit of a shutdown, because clients keep their connections open."""


S = TypeVar("S", bound="ServerWithCertificate")


class ListenError(Exception):
    """Failure to open the socket; the message names the address, the cause and the option."""


class ServerFailedError(Exception):
    """Failure of the server's start, which the log describes."""


def load_certificates(settings: Settings) -> Certificates | None:
    """Load the certificate that the settings name; None for plain HTTP. Raises ``SettingError`` for unusable files."""
    if settings.api_cert_file is None or settings.api_key_file is None:
        return None
    try:
        files = (settings.api_cert_file, settings.api_key_file)
        certificates = Certificates(
            CertificatePair(
                *files,
                CERTIFICATE_VARIABLES,
                settings.api_client_ca_file,
                settings.api_aggregated,
                settings.api_proxy_ca_file,
            )
        )
    except BrokenPairError as error:
        raise SettingError(str(error)) from None
    if problem := describe_shared_authority(certificates):
        raise SettingError(problem)
    return certificates


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

    def explain_unreadiness(self) -> str:
        """Explain why a kubelet should send no requests here; empty if it should.

        A store that is away is no reason: the API answers from the other store, or names the store that it waits for.
        """
        topics = {"attempts": self.app.state.topic, "pods": self.app.state.pods_topic}
        unread = [name for name, topic in topics.items() if not topic.is_read]
        return f"the topic of {' and '.join(unread)} is not replayed to its end yet" if unread else ""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Watches never end by themselves: without this, every shutdown would take the maximum time.
        self.app.state.changes.close()
        self.app.state.waits.close()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        following = asyncio.create_task(self._certificates.run()) if self._certificates else None
        ending = asyncio.create_task(self._end_when_refused())
        try:
            await super().serve(sockets)
            if ending.done():
                ending.result()
        finally:
            await end([task for task in (following, ending) if task])

    async def _end_when_refused(self) -> None:
        """End within the usual time for answers. Raises ``FixedCredentialsError``."""
        try:
            await end_when_refused()
        except FixedCredentialsError:
            self.should_exit = True
            raise


class ServerOfPart(ServerWithCertificate):
    """Server next to other parts of one process, which handles the signals for all of them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def request_stop(self) -> None:
        self.should_exit = True

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        # uvicorn ends the process where the application does not start; the other parts continue.
        except SystemExit:
            raise ServerFailedError("the API could not start; the lines above have the cause") from None


def create_server(settings: Settings, certificates: Certificates | None, tracing: Tracing) -> ServerWithCertificate:
    """Create the server with its application. Raises ``SettingError``."""
    return _create(ServerWithCertificate, settings, certificates, tracing)


def _create(kind: type[S], settings: Settings, certificates: Certificates | None, tracing: Tracing) -> S:
    _choose_keys(certificates, has_rights=settings.api_authentication == "kubernetes")
    # uvicorn logs errors only: its lines at the start would repeat the one about the address.
    return kind(
        create_app(settings, tracing=tracing, certificates=certificates),
        certificates,
        http=JsonProtocol,
        # Watches have a separate bound. The remaining quarter is for stores, files and handshakes.
        limit_concurrency=min(settings.api_watches + _CONNECTIONS, allow_all_descriptors() * 3 // 4),
        access_log=False,
        log_level="error",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def _choose_keys(certificates: Certificates | None, *, has_rights: bool) -> None:
    """Choose the keys of what callers hold for the API between two requests."""
    if certificates:
        # All replicas have the same key, because another replica may answer the request for the next page.
        SEAL.read_key = POSITION_SEAL.read_key = lambda: certificates.key_digest
    elif has_rights:
        # Behind a proxy that ends TLS. To another replica this position has expired, and the watch begins again.
        key = os.urandom(32)
        POSITION_SEAL.read_key = lambda: key


async def work(settings: Settings, listening: socket.socket, tracing: Tracing, serve_health: ServeHealth) -> None:
    """Answer on ``listening``, which stays open, until cancelled. Raises ``SettingError``, ``ServerFailedError``."""
    server = _create(ServerOfPart, settings, load_certificates(settings), tracing)
    with serve_health(
        settings.metrics_address, server.app.state.registry, report_no_problem, server.explain_unreadiness
    ):
        # A copy: uvicorn closes the socket when it ends, and a restart listens on it again.
        await run_until_cancelled(server.serve([listening.dup()]), server.request_stop, 2 * SHUTDOWN_SECONDS)


async def check_cluster(settings: Settings) -> None:
    """Check that an API server can check callers, if the settings require it. Raises ``SettingError``."""
    if settings.api_authentication == "kubernetes":
        try:
            await check(choose_loader(settings.kubeconfig, settings.context))
        except KubeConfigError as error:
            raise SettingError(f"{derive_variable('kubeconfig')}: {error}") from None


def listen(address: HostPort) -> socket.socket:
    """Open the listening socket. Raises ``ListenError``.

    uvicorn itself would end with a log line instead of the cause when the port is busy.
    """
    try:
        family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server(tuple(address), family=family, backlog=2048)
    except OSError as error:
        # create_server appends "(while attempting to bind on address …)".
        cause = str(error.strerror).partition(" (while")[0]
        raise ListenError(f"can't listen on {address}: {cause}; --listen chooses another address") from None


def describe_address(listening: socket.socket, *, is_secured: bool) -> str:
    """Describe where the API answers, for the person who started it."""
    scheme = "https" if is_secured else "http"
    return f"schedulerlog API on {scheme}://{HostPort(*listening.getsockname()[:2])} (documentation: /docs)"

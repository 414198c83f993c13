"""The socket, and uvicorn on it: HTTP or HTTPS, patience with slow clients, and a clean end."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from runtime.errors import SettingError
from runtime.http.patient_http import PatientHttp
from runtime.http.tls_listener import PatientServer
from runtime.settings.addresses import MISDIRECTED, OTHER_NAME_REFUSAL, HostPort, is_own

log = logging.getLogger(__name__)

KNOWN_CLIENT: Final = "schedulerlog.known_client"
"""An entry of a scope's `extensions`: the client has shown a certificate of the authority that we trust."""


class HttpServer(PatientServer):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again once it has stopped, before the spool is sent.
        yield


class Protocol(PatientHttp):
    """A request's scope says whether its client has shown a certificate that the handshake has checked."""

    # Bodies of megabytes have a pace and a budget of their own: see `runtime.http.bodies`.
    is_for_bodies = False
    _is_known_client = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        # Empty where the client has shown none, and where none was asked for.
        self._is_known_client = bool(tls and tls.getpeercert())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._is_known_client:
            cast("dict[str, Any]", self.scope)["extensions"] = {KNOWN_CLIENT: {}}


def bind(address: HostPort, flag: str = "--listen") -> socket.socket:
    """Bind a socket to the address, not listening yet. Raises `SettingError` where that fails."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named asyncio switches Nagle's delay off; without, every small answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # A restart must not wait for connections of the previous process in TIME_WAIT.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingError(f"{flag}: {address} is in use by another process, give another address") from None
        raise SettingError(f"{flag}: can't listen on {address}: {error.strerror or error}") from None
    return listener


async def answer(
    app: Starlette,
    listener: socket.socket,
    context: ssl.SSLContext | None,
    tasks: "Sequence[asyncio.Task[None]]",
    webhook: tuple[Starlette, socket.socket] | None = None,
) -> None:
    """Serve until a signal; a task that ends by itself has failed, and ends the process with its error.

    `context`: HTTPS with it, without it plain HTTP. `webhook`: served next to it, at an address of its own.
    """
    sites = [(app, listener), *([webhook] if webhook else ())]
    servers = [HttpServer(create_config(served, context, HostPort(*site.getsockname()[:2]))) for served, site in sites]

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    for task in tasks:
        task.add_done_callback(lambda _: stop())
    address = HostPort(*listener.getsockname()[:2])
    log.info("answering kube-scheduler on %s://%s", "https" if context else "http", address)
    if webhook:
        log.info("answering the webhook on port %d", webhook[1].getsockname()[1])
    await asyncio.gather(*(server.serve([site]) for server, (_, site) in zip(servers, sites, strict=True)))
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()


def _restrict_names(app: ASGIApp) -> ASGIApp:
    async def answer_own(scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        # A client of HTTP 1.0 names none, and browsers always do.
        is_right = all(is_own(host, ()) for host in hosts)
        await (app if is_right else PlainTextResponse(OTHER_NAME_REFUSAL, MISDIRECTED))(scope, receive, send)

    return answer_own


def create_config(app: Starlette, context: ssl.SSLContext | None, address: HostPort) -> uvicorn.Config:
    secured: dict[str, Any] = {"ssl_context_factory": lambda *_: context} if context else {}
    return uvicorn.Config(
        # Of HTTPS a browser checks the name.
        app if context or not address.is_loopback else _restrict_names(app),
        http=Protocol,
        # Otherwise uvicorn configures logging itself, over what `runtime.telemetry.logs` has set up.
        log_config=None,
        # Otherwise everybody who sends bytes that are no request writes a line for each.
        log_level="error",
        access_log=False,
        lifespan="off",
        # A caller is the one who connected, whatever its headers name.
        proxy_headers=False,
        server_header=False,
        # Without descriptors asyncio logs an error for each of them once a second.
        backlog=128,
        # Each connection may have a small body under way (`runtime.http.bodies`). kube-scheduler opens some dozen.
        limit_concurrency=500,
        timeout_graceful_shutdown=5,
        # Longer than kube-scheduler lets a connection lie idle between two pods of a quiet minute.
        timeout_keep_alive=75,
        **secured,
    )

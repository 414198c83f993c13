"""Connections over HTTPS from their acceptance to the end of the TLS handshake: few at once, and none for long.

asyncio accepts without end, and its protocols learn of a connection when the handshake is done. Until then each takes
0.3 MB, so that 1,500 silent clients took half a gigabyte.
"""

import asyncio
import contextlib
import errno
import logging
import math
import resource
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from runtime.backoff import REMIND_SECONDS
from runtime.http.patient_http import REQUEST_SECONDS

log = logging.getLogger(__name__)

MAX_HANDSHAKES: Final = 200
GRACE_SECONDS: Final = 1.0
"""A handshake gets so long in any case: many clients who connect at once need it."""
_PAUSE_SECONDS: Final = 0.1
_NO_RESOURCE: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class TlsListener:
    """Accepts connections, and hands them to a protocol when the handshake is done.

    Of too many open handshakes, it ends the oldest. To uvicorn this is a server.
    """

    def __init__(self, listener: socket.socket, new_protocol: Callable[[], asyncio.Protocol], context: ssl.SSLContext):
        self._listener, self._new_protocol, self._context = listener, new_protocol, context
        self._handshakes: dict[asyncio.Task[None], float] = {}
        """Open handshakes with their beginnings; the oldest is the first."""
        self._accepting: asyncio.Task[None] | None = None

    def start(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(), name="accept")

    def close(self) -> None:
        for task in self._list_tasks():
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._list_tasks(), return_exceptions=True)

    def _list_tasks(self) -> list[asyncio.Task[None]]:
        return [*([self._accepting] if self._accepting else ()), *self._handshakes]

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._make_place(MAX_HANDSHAKES - 1)
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # No descriptor is left, or the client was gone already.
                log.warning("a connection can't be accepted: %s", error.strerror or error)
                await self._make_place(len(self._handshakes) // 2)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            handshake = loop.create_task(self._shake_hands(connection))
            self._handshakes[handshake] = loop.time()
            handshake.add_done_callback(self._handshakes.pop)

    async def _make_place(self, limit: int) -> None:
        """Wait until at most ``limit`` handshakes are open, and end those that had their time."""
        loop = asyncio.get_running_loop()
        while len(self._handshakes) > limit:
            oldest, began = next(iter(self._handshakes.items()))
            await asyncio.wait(
                self._handshakes, timeout=max(began + GRACE_SECONDS - loop.time(), 0), return_when="FIRST_COMPLETED"
            )
            if len(self._handshakes) > limit and loop.time() >= began + GRACE_SECONDS:
                oldest.cancel()
                await asyncio.wait([oldest])

    async def _shake_hands(self, connection: socket.socket) -> None:
        # A client that speaks no TLS, or breaks off, is nothing for the log.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._new_protocol, connection, ssl=self._context, ssl_handshake_timeout=REQUEST_SECONDS
            )


class AcceptFailures:
    """Handler of a loop's exceptions that logs a lack of descriptors once a minute.

    asyncio logs it at every try, with a traceback: a megabyte within seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._silent_until = -math.inf

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _NO_RESOURCE and "accept" in context.get("message", "")):
            loop.default_exception_handler(context)
        elif self._clock() >= self._silent_until:
            self._silent_until = self._clock() + REMIND_SECONDS
            log.warning("connections can't be accepted: %s; further ones are logged once a minute", error.strerror)


class PatientServer(uvicorn.Server):
    """uvicorn on sockets that are bound already."""

    def create_protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(AcceptFailures().handle)
        await super().startup([])
        for sock in sockets or ():
            if context := self.config.ssl:
                secured = TlsListener(sock, self.create_protocol, context)
                secured.start(self.config.backlog)
                self.servers.append(secured)  # type: ignore[arg-type]
            else:
                plain = await asyncio.get_running_loop().create_server(
                    self.create_protocol, sock=sock, backlog=self.config.backlog
                )
                self.servers.append(plain)


def allow_all_descriptors() -> int:
    """Raise the limit to the system's maximum and return it: a process without free descriptors answers no caller."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    return limit

"""Connections of a client, which close without waiting for the server."""

import asyncio
from typing import Any, Final

import aiohttp

from runtime.bounded_cache import BoundedCache

_RECENT: Final = 100
"""Connections that `close` ends; uvloop's can't be referred to weakly."""


class Connector(aiohttp.TCPConnector):
    """Connector whose `close` leaves no socket open.

    aiohttp forgets a connection that a caller gave up in the middle of an answer, such as a watch's. Its TLS waits up
    to half a minute for the end that the server sends, and a busy server sends it late.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._recent = BoundedCache[asyncio.Transport, None](_RECENT)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        if connection.transport:
            self._recent.put(connection.transport, None)
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        for transport in self._recent:
            transport.abort()

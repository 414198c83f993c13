"""Streaming responses of watches, with limits per caller."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.http.errors import ApiError, TooManyRequestsError
from api.http.json_protocol import ABORT
from api.http.request_guard import UNTIMED_STATE
from api.http.watch_query import EVENT_STREAM, LINES
from api.watch.views import encode_error

SEND_SECONDS: Final = 10.0
"""Time after which the API hangs up on a client that takes nothing."""
CALLER_SHARE: Final = 10
"""Divisor of all streams: an identified caller may have this part of them."""


class Streams:
    """Open streams, at most ``max_streams`` at once."""

    def __init__(self, max_streams: int) -> None:
        self._max = max_streams
        self._open: Counter[str] = Counter()
        self.cut_off = 0
        """Number of streams ended because their clients took nothing for too long."""

    def __len__(self) -> int:
        return self._open.total()

    @contextmanager
    def counted(self, caller: str) -> Iterator[None]:
        """Count of a stream while it is open. Raises ``TooManyRequestsError``."""
        self.refuse_more(caller)
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    def refuse_more(self, caller: str) -> None:
        """Raise ``TooManyRequestsError`` if one more stream would be too many."""
        limit = max(self._max // CALLER_SHARE, 1) if caller else self._max
        if len(self) >= self._max or self._open[caller] >= limit:
            raise TooManyRequestsError(
                f"{self._open[caller] if len(self) < self._max else len(self)} watches are open, the maximum",
                "End some of them; one watch of a namespace shows all of its pods.",
            )


class EventStream(Response):
    """Response that sends ``events`` as they come; an ``ApiError`` that they raise is the last event."""

    def __init__(
        self,
        streams: Streams,
        caller: str,
        events: AsyncGenerator[bytes],
        close: Callable[[], None],
        *,
        is_sse: bool,
    ) -> None:
        # X-Accel-Buffering: nginx would hold events back until it has a page of them.
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(media_type=EVENT_STREAM if is_sse else LINES, headers=headers)
        del self.headers["content-length"]
        self._streams, self._caller, self._events, self._close = streams, caller, events, close
        self._is_sse = is_sse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][UNTIMED_STATE] = True
        abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
        try:
            with self._streams.counted(self._caller):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await _wait_for_first(self._send_all(send, abort), _wait_for_disconnect(receive))
        finally:
            self._close()

    async def _send_all(self, send: Send, abort: Callable[[], None] | None) -> None:
        try:
            # Before the first event, so that the client receives the headers at once.
            await send(_to_message(b""))
            try:
                async with aclosing(self._events) as events:
                    async for batch in events:
                        await self._send_in_time(send, batch)
            except ApiError as error:
                await self._send_in_time(send, encode_error(error, is_sse=self._is_sse))
            await self._send_in_time(send, b"", is_last=True)
        except TimeoutError:
            self._streams.cut_off += 1
            if abort:
                abort()

    async def _send_in_time(self, send: Send, body: bytes, *, is_last: bool = False) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await send(_to_message(body, is_last=is_last))


def _to_message(body: bytes, *, is_last: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not is_last}


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        """Ignore the request's body."""


async def _wait_for_first(*awaited: Awaitable[None]) -> None:
    """Wait until one of them ends, and end the others."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

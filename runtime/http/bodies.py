"""Bodies of requests, within the memory that all callers share, and with no more values than a parser bears."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

BODY_SECONDS: Final = 30.0
"""Limit of a body's arrival: kube-scheduler itself gives up after `httpTimeout`, 30 s with HAMi's chart."""
SMALL_BYTES: Final = 256 * 1024
"""Bytes of each body that are always accepted: a pod and the names of some thousand nodes."""
AT_ONCE: Final = 2
"""Number of bodies of the greatest length that fit into the bytes that all callers share beyond ``SMALL_BYTES``."""
BYTES_PER_VALUE: Final = 20
"""Bytes per JSON value that a body of the greatest length has at least. Node objects have more of them; a list of empty
lists has three, and takes thirty times its length when it is parsed.
"""
_LARGE_BYTES: Final = 1024 * 1024
"""Length from which a body counts as a burden."""


class RefusedBodyError(Exception):
    """The server does not accept the body."""

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(cause)
        self.status = status

    def to_response(self) -> Response:
        return PlainTextResponse(f"{self}\n", self.status)


@dataclass(slots=True)
class _Share:
    """Bytes that a body takes of those that all callers share."""

    size: int = 0


class Bodies:
    """Reads the bodies of all callers of a process."""

    def __init__(self, max_bytes: int, advice: str = "") -> None:
        """Set the limit of one body, `max_bytes`, and the `advice` to a caller that sends a longer one."""
        self._max_bytes = max_bytes
        self._advice = advice
        self._left = AT_ONCE * max_bytes

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The body; its memory counts as taken until the block ends. Raises `RefusedBodyError`."""
        share = _Share()
        try:
            yield await self._receive(request, share)
        finally:
            self._left += share.size

    async def _receive(self, request: Request, share: _Share) -> bytes:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read_stream(request, share)
        except TimeoutError:
            raise RefusedBodyError(408, f"the body has not arrived within {BODY_SECONDS:.0f} s") from None
        except ClientDisconnect:
            raise RefusedBodyError(400, "the body ends early") from None
        self.refuse_many_values(body)
        return body

    async def _read_stream(self, request: Request, share: _Share) -> bytes:
        announced = request.headers.get("content-length", "")
        if announced.isdigit():
            self._refuse_long(int(announced))
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            self._refuse_long(size)
            self._take(size, share)
            parts.append(part)
        return b"".join(parts)

    def _refuse_long(self, size: int) -> None:
        if size > self._max_bytes:
            raise RefusedBodyError(413, f"the body is longer than {self._max_bytes} bytes{self._advice}")

    def _take(self, size: int, share: _Share) -> None:
        more = max(size - SMALL_BYTES, 0) - share.size
        if more > self._left:
            raise RefusedBodyError(503, "other requests' bodies take all the memory that bodies may take; ask again")
        self._left -= more
        share.size += more

    def refuse_many_values(self, body: bytes) -> None:
        """Raise `RefusedBodyError` for a body that takes a multiple of its length when it is parsed."""
        if len(body) <= _LARGE_BYTES:
            return
        values, limit = sum(map(body.count, (b",", b"[", b"{"))), self._max_bytes // BYTES_PER_VALUE
        if values > limit:
            raise RefusedBodyError(413, f"the body has some {values} JSON values, more than {limit}{self._advice}")

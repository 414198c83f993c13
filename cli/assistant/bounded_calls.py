"""Limits of an MCP server over HTTP: only POST, bodies of a bounded length with a bounded number of JSON values.

The SDK bounds one body. The bodies of all callers together, and the objects that a parser makes of one, would still be
gigabytes. The SDK also keeps a stream open for each GET, on which a server without sessions never sends anything.
"""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime.http.bodies import Bodies, RefusedBodyError

MAX_BYTES: Final = 4 * 1024 * 1024
"""The text of a log is the longest argument of a tool."""
MAX_VALUES: Final = 1_000
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)


class CallBodies(Bodies):
    def refuse_many_values(self, body: bytes) -> None:
        # Quotes first, since each text is found one by one.
        texts = (body.count(b'"') - body.count(b'\\"')) // 2
        if texts <= MAX_VALUES:
            texts = sum(map(_TEXT.sub(b"", body).count, (b",", b"[", b"{")))
        if texts > MAX_VALUES:
            raise RefusedBodyError(413, f"the body has more than {MAX_VALUES} JSON values")


class BoundedCalls:
    """Wraps ``app``; requests that are not HTTP (lifespan) pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bodies = CallBodies(MAX_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] != "POST":
            await PlainTextResponse("send a call by POST\n", 405, {"Allow": "POST"})(scope, receive, send)
        else:
            await self._call(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._bodies.read(Request(scope, receive)) as body:
                arrived: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

                async def receive_body() -> Message:
                    return arrived.pop() if arrived else await receive()

                await self._app(scope, receive_body, send)
        except RefusedBodyError as error:
            await error.to_response()(scope, receive, send)

"""ASGI middleware around the application: refuses percent-encoded paths, counts requests and bounds their waits."""

from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.caller_wait import CallerWait
from api.http.errors import add_protection, to_error_response
from api.metrics import Metrics

UNTIMED_STATE: Final = "untimed"
"""Entry of a request's state that marks its answer as a stream: the time that it was open is no latency."""
UNMATCHED: Final = "unmatched"
"""Label ``route`` of requests that no route matched."""


class RequestGuard:
    """Middleware around ``app``; requests that are not HTTP (lifespan) pass unchanged.

    ``index_seconds``: limit of a caller's wait for OpenSearch.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, index_seconds: float) -> None:
        self._app, self._metrics, self._index_seconds = app, metrics, index_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # An application that fails before it sends a status counts as 500.
        started, status = perf_counter(), 500

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_protection(message["headers"])
            await send(message)

        try:
            # A proxy authorizes the path as it was sent. If a router behind it decodes an escaped slash once more, the
            # path names another pod than the one that was authorized (GHSA-c534-2w9c-x7fm is such a hole). No path
            # here needs an escape, so all of them are refused.
            if b"%" in scope.get("raw_path", b""):
                refusal = to_error_response(
                    400,
                    "the path holds a percent-encoded character",
                    "Write the names as they are: RFC 1123 names never need encoding.",
                )
                await refusal(scope, receive, send_noting_status)
            else:
                with CallerWait(self._index_seconds):
                    await self._app(scope, receive, send_noting_status)
        finally:
            # The route's template, never the path: names of pods must not become labels.
            route = getattr(scope.get("route"), "path", UNMATCHED)
            self._metrics.count(route, status)
            if UNTIMED_STATE not in scope.get("state", ()):
                self._metrics.observe_request(route, perf_counter() - started)

"""Around every request: paths that are not plain are refused, and every answer is counted."""

from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import error_response
from api.metrics import Metrics

UNMATCHED: Final = "unmatched"


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            # Decoded once more by a router or a proxy, an escaped slash names another pod than the one that was
            # authorized (GHSA-c534-2w9c-x7fm is such a hole). No path of ours needs an escape.
            if b"%" in scope.get("raw_path", b""):
                said = "the path holds a percent-encoded character"
                refused = error_response(400, said, "Names here are RFC 1123 names, which never need encoding.")
                await refused(scope, receive, noting)
            else:
                await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", UNMATCHED)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(perf_counter() - began)

"""ASGI middleware: translates the path of a request to the aggregated API, and the errors of its answer."""

from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.aggregated.discovery import DOCUMENTS
from api.aggregated.paths import own_path
from api.aggregated.statuses import status_of
from api.http.cluster import AGGREGATED, BASE_STATE
from api.http.pagination import ASKED_STATE

_BELOW: Final = "/apis"


class AggregatedApi:
    """Wraps ``app``, to which all other requests pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_BELOW):
            await self._app(scope, receive, send)
            return
        await self._app(_translated(scope), receive, _Answer(send).send)


def _translated(scope: Scope) -> Scope:
    """The request as it is below ``/api/v1``; unchanged where that has no such path, so that it is answered by 404."""
    path = scope["path"]
    own = None if path in DOCUMENTS else own_path(path)
    if own is None:
        return scope
    query = scope["query_string"]
    if own.namespace:
        # First, and beside what the caller gives: two namespaces are refused as every parameter that is repeated.
        query = b"&".join(filter(None, (f"namespace={quote(own.namespace)}".encode(), query)))
    asked = (path, scope["query_string"].decode("latin-1"))
    state = {**scope.get("state", {}), BASE_STATE: AGGREGATED, ASKED_STATE: asked}
    return {**scope, "path": own.path, "query_string": query, "state": state}


class _Answer:
    """Sends an answer; the body of an error becomes a ``Status``."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        """The start of an error's answer, sent only with its body: the length is known by then."""
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            self._start = message
        elif self._start is None:
            await self._send(message)
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_status(self._start)

    async def _send_status(self, start: Message) -> None:
        # The answer to HEAD has no body, and the length of the one that GET would have.
        body = status_of(start["status"], self._body) if self._body else b""
        if body:
            headers = MutableHeaders(raw=start["headers"])
            headers["Content-Length"], headers["Content-Type"] = str(len(body)), "application/json"
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})

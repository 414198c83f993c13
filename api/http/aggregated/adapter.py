"""ASGI middleware that translates requests to the aggregated API and their answers, and the routes of discovery."""

from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.aggregated.discovery import DOCUMENTS
from api.http.aggregated.translation import to_status, translate_path
from api.http.cluster import AGGREGATED, BASE_STATE
from api.http.errors import to_error_response
from api.http.pagination import ORIGINAL_STATE

_BELOW: Final = "/apis"


class AggregatedApi:
    """Middleware around ``app``, to which all other requests pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_BELOW):
            await self._app(scope, receive, send)
            return
        await self._app(_translate(scope), receive, _Answer(send).send)


def _translate(scope: Scope) -> Scope:
    """Translate the request to its path below ``/api/v1``; unchanged, and so answered with 404, if there is none."""
    path = scope["path"]
    target = None if path in DOCUMENTS else translate_path(path)
    if target is None:
        return scope
    query = scope["query_string"]
    if target.namespace:
        # In addition to the caller's parameters: two namespaces are refused like every repeated parameter.
        query = b"&".join(filter(None, (f"namespace={quote(target.namespace)}".encode(), query)))
    original = (path, scope["query_string"].decode("latin-1"))
    state = {**scope.get("state", {}), BASE_STATE: AGGREGATED, ORIGINAL_STATE: original}
    return {**scope, "path": target.path, "query_string": query, "state": state}


class _Answer:
    """Sender of an answer that turns the body of an error into a ``Status``."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        """Start of an error's answer, sent together with its body because its length depends on that."""
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
        # The answer to HEAD has no body, but the length of the body that GET would have.
        body = to_status(start["status"], self._body) if self._body else b""
        if body:
            headers = MutableHeaders(raw=start["headers"])
            headers["Content-Length"], headers["Content-Type"] = str(len(body)), "application/json"
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def list_discovery_routes() -> list[Route]:
    """List the routes of the discovery documents, which the API server and kubectl read."""
    return [Route(path, _answer_discovery) for path in DOCUMENTS]


async def _answer_discovery(request: Request) -> Response:
    # The API server asks first for a newer form, and after this error for the first one.
    if "as=APIGroupDiscoveryList" in request.headers.get("accept", ""):
        return to_error_response(406, "discovery has only its first form", "Accept application/json.")
    return Response(DOCUMENTS[request.url.path], media_type="application/json")

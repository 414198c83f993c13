"""Requests to the API's own routes: a page shows only the API's answers to the same caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Message


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer of one route."""

    path: str
    """Path with the query, for links and commands."""
    status: int
    body: bytes

    @property
    def is_right(self) -> bool:
        return self.status < 400

    def parse_json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answers:
    router: ASGIApp
    """Routes of the API, below the layer that identifies the caller."""

    async def get(self, request: Request, path: str, parameters: Mapping[str, str | None] | None = None) -> Answered:
        """Get the answer to the page's caller. Parameters that are None or empty are left out."""
        return await self._ask(request, "GET", path, parameters or {}, b"", "")

    async def post(self, request: Request, path: str, body: bytes, media_type: str) -> Answered:
        return await self._ask(request, "POST", path, {}, body, media_type)

    async def _ask(
        self,
        request: Request,
        method: str,
        path: str,
        parameters: Mapping[str, str | None],
        body: bytes,
        media_type: str,
    ) -> Answered:
        query = urlencode({name: value for name, value in parameters.items() if value})
        headers = [(b"accept", b"application/json")]
        if media_type:
            headers += [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
        # The state is the page's, with the caller's rights: the handler checks them, and the gate sees that it did.
        scope = dict(request.scope) | {
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "path_params": {},
        }
        status, parts = 500, list[bytes]()

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self.router(scope, receive, send)
        return Answered(f"{path}?{query}" if query else path, status, b"".join(parts))

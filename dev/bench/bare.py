"""``python -m dev.bench.bare PORT FILE [asgi]``: a handler that answers every request with the bytes of the file.

With ``asgi`` without Starlette: two messages, and nothing else that is not the server's.
"""

import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


def create_app(body: bytes) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


def create_asgi_app(body: bytes) -> ASGIApp:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - ASGI's signature
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


if __name__ == "__main__":
    create: Any = create_asgi_app if sys.argv[3:] == ["asgi"] else create_app
    # Without an access log, which would cost more than the handler.
    uvicorn.run(
        create(Path(sys.argv[2]).read_bytes()),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=False,
        lifespan="off",
    )

"""``python -m bench.bare PORT FILE``: a handler that answers every request with the bytes of the file."""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def app(body: bytes) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


if __name__ == "__main__":
    # Without an access log, which would cost more than the handler.
    uvicorn.run(app(Path(sys.argv[2]).read_bytes()), host="127.0.0.1", port=int(sys.argv[1]), access_log=False)

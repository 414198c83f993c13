"""``python -m dev.bench.reviews PORT``: answers each TokenReview and SubjectAccessReview with yes."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

_USER = {"username": "system:serviceaccount:llm:reader", "uid": "1", "groups": ["system:authenticated"]}


async def review(request: Request) -> JSONResponse:
    body = await request.json()
    spec = body["spec"]
    status = {"authenticated": True, "user": _USER, "audiences": spec.get("audiences", [])}
    return JSONResponse(body | {"status": status if body["kind"] == "TokenReview" else {"allowed": True}})


if __name__ == "__main__":
    app = Starlette(routes=[Route("/{path:path}", review, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False)

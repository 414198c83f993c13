"""ASGI middleware of the pages: passes a browser's token to the gate, and turns errors into pages.

It wraps everything else, so that a refusal of the gate is a page, too.
"""

import logging
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import PROBLEM, BadRequestError, describe_problem
from api.ui.cookies import (
    EMBED,
    LOGIN,
    STATIC,
    is_page,
    is_sent_by_us,
    is_token,
    parse_token_cookie,
    set_cookie,
)
from api.ui.page_shell import build_context
from page.render import render_error

MAX_FORM_BYTES: Final = 1024 * 1024


async def read_form(request: Request) -> dict[str, str]:
    """Read the first value of each field. Raises ``BadRequestError``."""
    return parse_fields(await read_body(request))


async def read_body(request: Request) -> bytes:
    """Read the body. Raises ``BadRequestError`` for more than ``MAX_FORM_BYTES``."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise BadRequestError(f"the form has more than {MAX_FORM_BYTES} bytes", "Send less at once.")
    return body


def parse_fields(body: bytes) -> dict[str, str]:
    """Parse the first value of each field. Raises ``BadRequestError``."""
    try:
        fields = parse_qs(body.decode("ascii"), errors="strict", max_num_fields=20)
    except ValueError:
        raise BadRequestError("the form can't be read", "Send it from a page of this address.") from None
    return {name: values[0] for name, values in fields.items()}


log = logging.getLogger(__name__)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    # Without it browsers send no origin with a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class PageSession:
    """Middleware around ``app``. ``frame_ancestors``: origins whose pages may show ``/embed/…`` in a frame."""

    def __init__(self, app: ASGIApp, frame_ancestors: str = "") -> None:
        self._app, self._frame_ancestors = app, frame_ancestors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scheme = scope.get("scheme", "http")
        answer = _ErrorsAsPages(Request(scope), self._with_headers(scope["path"], send))
        if scope["method"] not in ("GET", "HEAD") and not is_sent_by_us(headers, scheme):
            await answer.refuse(
                403, "this form was not sent by a page of this address", "Open the page, and try again."
            )
            return
        try:
            if scope["path"] == LOGIN:
                scope, receive = await _with_pasted_token(scope, receive)
            # Files need no caller: an expired token would count as invalid for each of them.
            elif not scope["path"].startswith(STATIC) and "authorization" not in headers:
                scope = _with_token(scope, parse_token_cookie(headers, scheme))
            await self._app(scope, receive, answer)
        except BadRequestError as error:
            await answer.refuse(400, error.error, error.next_step)
        except Exception as error:
            # Raised again, as by Starlette: uvicorn logs the traceback.
            if not answer.has_started:
                await answer.refuse(500, f"this page failed because of a defect ({type(error).__name__})", "Report it.")
            raise

    def _with_headers(self, path: str, send: Send) -> Send:
        ancestors = (self._frame_ancestors if path.startswith(EMBED + "/") else "") or "'none'"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers.update(HEADERS | {"Content-Security-Policy": POLICY.format(ancestors)})
                if not path.startswith(STATIC) or message["status"] >= 400:
                    headers["Cache-Control"] = "no-store"
                headers.add_vary_header("Cookie")
                headers.add_vary_header("Accept-Language")
            await send(message)

        return send_with_headers


def _with_token(scope: Scope, token: str | None) -> Scope:
    return (
        dict(scope) | {"headers": [*scope["headers"], (b"authorization", b"Bearer " + token.encode())]}
        if token
        else scope
    )


async def _with_pasted_token(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Replace the token of a login by that of the form, the only one that the gate checks."""
    body = await read_body(Request(scope, receive)) if scope["method"] == "POST" else b""
    token = parse_fields(body).get("token", "").strip()
    others = [(name, value) for name, value in scope["headers"] if name != b"authorization"]

    async def receive_body() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return _with_token(dict(scope) | {"headers": others}, token if is_token(token) else None), receive_body


class _ErrorsAsPages:
    """Sender that turns a problem (RFC 9457) into a page, and the refusal of an unknown caller into the login."""

    def __init__(self, request: Request, send: Send) -> None:
        self._request, self._send = request, send
        self._problem: Message | None = None
        self._body = b""
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            if kind.startswith(PROBLEM):
                self._problem = message
                return
        if self._problem is None:
            self.has_started = True
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            await self._show(self._problem["status"], orjson.loads(self._body), self._problem["headers"])

    async def refuse(self, status: int, error: str, next_step: str) -> None:
        await self._show(status, describe_problem(status, error, next_step).model_dump(), [])

    async def _show(self, status: int, body: dict[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
        self.has_started = True
        request, context = self._request, build_context(self._request)
        response: Response
        if status == 401 and request.method == "GET" and not context.is_embedded:
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            response = RedirectResponse(f"{LOGIN}?{urlencode({'next': target})}", 303)
            # An expired token would cost a review of every request.
            response.headers["Set-Cookie"] = set_cookie("", request.url.scheme)
        else:
            page = render_error(context, status, body["error"], body["next"], body.get("code", ""))
            kept_headers = {
                name.decode(): value.decode() for name, value in headers if name.lower() in (b"retry-after", b"allow")
            }
            response = HTMLResponse(page, status, kept_headers)
        await response(request.scope, _receive_disconnect, self._send)


async def _receive_disconnect() -> Message:
    return {"type": "http.disconnect"}

"""Spans of requests, if tracing is on, and below them spans of their requests to OpenSearch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime.telemetry.logs import identify_subject
from runtime.telemetry.spans import Span, Tracing
from schemas.codec.trace_context import trace_of_caller

UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that the cluster itself requests every few seconds."""

_CURRENT: Final[ContextVar[tuple[Tracing, Span] | None]] = ContextVar("request_span", default=None)


class RequestSpans:
    """Middleware around ``app``. Spans continue the caller's trace (``traceparent``, ``tracestate``) or begin one."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNTRACED:
            await self._app(scope, receive, send)
            return
        span = _begin(self._tracing, scope)
        status = 500

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        token = _CURRENT.set((self._tracing, span))
        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            _CURRENT.reset(token)
            _describe(span, scope, status)
            # A caller's mistake is no error of the server, as OpenTelemetry's conventions for HTTP have it.
            span.end(f"HTTP {status}" if status >= 500 else "")


def trace_answered(tracing: Tracing, scope: Scope, status: int) -> None:
    """Record the span of a request that was answered at once."""
    span = _begin(tracing, scope)
    _describe(span, scope, status)
    span.end()


def _begin(tracing: Tracing, scope: Scope) -> Span:
    headers = scope["headers"]
    parent = next((value for name, value in headers if name == b"traceparent"), b"")
    state = b",".join(value for name, value in headers if name == b"tracestate")
    return tracing.begin(scope["method"], trace_of_caller(parent, state), kind="server")


def _describe(span: Span, scope: Scope, status: int) -> None:
    # The route's template, never the path, so that requests of one kind have one name. Routing has set it by now.
    route = getattr(scope.get("route"), "path", "")
    http = {
        "http.request.method": scope["method"],
        "http.route": route,
        "http.response.status_code": status,
        "url.scheme": scope["scheme"],
        # A path without a route may name anything.
        "url.path": scope["path"] if route else "",
    }
    span.describe(f"{scope['method']} {route}".rstrip(), describe_path(scope.get("path_params", {})), http)


def describe_path(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Describe the object that the parameters of a path name, for ``extra=`` of a log call and for spans."""
    pod = f"{parameters['namespace']}/{parameters['name']}" if {"namespace", "name"} <= parameters.keys() else ""
    return identify_subject(attempt=parameters.get("attempt_id", ""), pod=pod, cluster=parameters.get("cluster", ""))


@contextmanager
def opensearch_span(path: str) -> Iterator[None]:
    """Span of the request to ``path`` (``/ALIAS/_search``, ``/_mget``), below the span of the current request.

    Without a current span it makes none.
    """
    if (current := _CURRENT.get()) is None:
        yield
        return
    tracing, above = current
    target, _, operation = path.lstrip("/").rpartition("/")
    span = tracing.begin(f"{operation} {target}".strip(), above.trace, kind="client")
    named = {"db.system.name": "opensearch", "db.operation.name": operation, "db.collection.name": target}
    span.describe("", attributes=named)
    try:
        yield
    except BaseException as error:
        span.end(f"{type(error).__name__}: {error}")
        raise
    span.end()

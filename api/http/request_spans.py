"""A span for each request where spans are made, and one below it for each request to OpenSearch that it needs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime.telemetry.logs import about
from runtime.telemetry.spans import Span, Tracing
from schemas.codec.trace_context import trace_of_caller

UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds, by the cluster itself."""

_CURRENT: Final[ContextVar[tuple[Tracing, Span] | None]] = ContextVar("request_span", default=None)


class RequestSpans:
    """Wraps ``app``. A span continues the caller's trace (``traceparent``, ``tracestate``), or begins one."""

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
    """The span of a request that was answered at once."""
    span = _begin(tracing, scope)
    _describe(span, scope, status)
    span.end()


def _begin(tracing: Tracing, scope: Scope) -> Span:
    headers = scope["headers"]
    parent = next((value for name, value in headers if name == b"traceparent"), b"")
    state = b",".join(value for name, value in headers if name == b"tracestate")
    return tracing.begin(scope["method"], trace_of_caller(parent, state), kind="server")


def _describe(span: Span, scope: Scope, status: int) -> None:
    # Known only now: the route's template, never the path, so that requests of one kind have one name.
    route = getattr(scope.get("route"), "path", "")
    http = {"http.request.method": scope["method"], "http.route": route, "http.response.status_code": str(status)}
    span.describe(f"{scope['method']} {route}".rstrip(), path_about(scope.get("path_params", {})), http)


def path_about(asked: Mapping[str, Any]) -> dict[str, str]:
    """What the parameters of a path ask for, for ``extra=`` of a log call and for spans."""
    pod = f"{asked['namespace']}/{asked['name']}" if {"namespace", "name"} <= asked.keys() else ""
    return about(attempt=asked.get("attempt_id", ""), pod=pod, cluster=asked.get("cluster", ""))


@contextmanager
def opensearch_span(path: str) -> Iterator[None]:
    """A span of the request to ``path`` (``/ALIAS/_search``, ``/_mget``), below that of the request that is answered.

    None is made outside of a request that has one.
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

"""The HTTP side: HAMi's extender routes, health, metrics, and their allowed callers. Bytes in, bytes out."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

import orjson
from prometheus_client import Histogram
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from runtime.http.bodies import Bodies, RefusedBodyError
from runtime.telemetry.exposition import encode_metrics, with_process
from scheduler.answering import extender_protocol
from scheduler.answering.extender_protocol import UnusableBodyError
from scheduler.answering.service import Scheduler
from scheduler.http.server import KNOWN_CLIENT
from scheduler.metrics import Metrics
from schemas.codec.trace_context import NO_TRACE, Trace, trace_of_caller


class AllowedCallers(NamedTuple):
    """Callers that may filter and bind: with a client certificate, on this machine or in this pod, both, or
    everybody."""

    have_certificate: bool = False
    are_on_loopback: bool = False

    def explain_refusal(self, request: Request) -> str:
        """Explain why the caller of this request is refused, and what to do; empty where it is allowed."""
        if self.have_certificate and KNOWN_CLIENT not in request.scope.get("extensions", {}):
            return "show a client certificate of the authority in --client-ca-file"
        if self.are_on_loopback and not _is_on_loopback(request.client.host if request.client else ""):
            return "call from the pod of this process by 127.0.0.1: it runs with --loopback-callers-only"
        return ""


EVERYBODY: Final = AllowedCallers()


def _is_on_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # What an IPv4 caller of a socket for both is called.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]
Answer = Callable[[bytes, Trace], Awaitable[bytes]]
"""From a body and the caller's trace to the body of the reply."""
Problems = Callable[[], Mapping[str, str]]
"""Source of the problems by part; empty for parts that are well."""
NEEDED: Final = frozenset(("cluster",))
"""The parts without which nothing can be decided."""
SHORTER_BODIES: Final = (
    " (--max-body-size); with nodeCacheCapable: true kube-scheduler sends the names of nodes and not the whole objects"
)
"""Advice for senders of a body that is too long."""


class NotReadyError(Exception):
    """It can't be answered yet; the text says why."""


def create_app(
    scheduler: Scheduler,
    metrics: Metrics,
    problems: Problems,
    bodies: Bodies,
    *,
    simulates_whole_nodes: bool = False,
    review: Callable[[bytes], bytes] | None = None,
    callers: AllowedCallers = EVERYBODY,
) -> Starlette:
    """Create the web app. `problems` are shown by /readyz; a process is ready while the needed parts have none, because
    a Service sends no calls to a process that is not ready.

    `simulates_whole_nodes`: a filter call that carries whole nodes is answered without a trace, as HAMi does it.
    `review`: answers an admission review, or raises `NotReadyError`; without it there is no webhook.
    `callers`: the callers that may filter and bind.
    """

    async def answer_filter(body: bytes, trace: Trace) -> bytes:
        try:
            filter_request = extender_protocol.read_filter(body)
        except UnusableBodyError as error:
            # HTTP 200 with Error set, as HAMi answers what it can't read.
            return extender_protocol.encode_filter_reply(error=str(error))
        if simulates_whole_nodes and filter_request.nodes is not None:
            return scheduler.simulate(filter_request)
        return await scheduler.filter(filter_request, trace)

    async def answer_bind(body: bytes, trace: Trace) -> bytes:
        try:
            bind_request = extender_protocol.read_bind(body)
        except UnusableBodyError as error:
            return extender_protocol.encode_bind_reply(str(error))
        return await scheduler.bind(bind_request, trace)

    async def answer_readyz(_: Request) -> Response:
        problems_by_part = problems()
        # HAMi's is always 200, also where its filter would block (docs/hami-differences.md).
        is_ready = not any(problems_by_part.get(part) for part in NEEDED)
        body = {"ready": is_ready} | {part: problem or "ok" for part, problem in problems_by_part.items()}
        return Response(orjson.dumps(body), 200 if is_ready else 503, media_type="application/json")

    exported = with_process(metrics.registry)

    async def show_metrics(request: Request) -> Response:
        content_type, body = encode_metrics(exported, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    filtering = _create_handler(answer_filter, metrics.filter_seconds, bodies, callers=callers)
    binding = _create_handler(answer_bind, metrics.bind_seconds, bodies, callers=callers)
    return Starlette(
        routes=[
            *([_create_webhook_route(review, metrics, bodies)] if review else ()),
            Route("/filter", filtering, methods=["POST"]),
            Route("/bind", binding, methods=["POST"]),
            Route("/healthz", _answer_healthz),
            Route("/readyz", answer_readyz),
            Route("/metrics", show_metrics),
        ],
        exception_handlers={404: _answer_unknown},
    )


def create_webhook(review: Callable[[bytes], bytes], metrics: Metrics, bodies: Bodies) -> Starlette:
    """Create only the webhook, for an address that the API server reaches and that decides nothing."""
    routes = [_create_webhook_route(review, metrics, bodies), Route("/healthz", _answer_healthz)]
    return Starlette(routes=routes, exception_handlers={404: _answer_unknown})


def _create_webhook_route(review: Callable[[bytes], bytes], metrics: Metrics, bodies: Bodies) -> Route:
    async def answer_review(body: bytes, _: Trace) -> bytes:
        return review(body)

    handler = _create_handler(answer_review, metrics.webhook_seconds, bodies, takes_nothing=True)
    return Route("/webhook", handler, methods=["POST"])


async def _answer_healthz(_: Request) -> Response:
    # HAMi's: 200 and no body, whatever the state of the cluster is.
    return Response()


def _create_handler(
    answer: Answer,
    seconds: Histogram,
    bodies: Bodies,
    *,
    takes_nothing: bool = False,
    callers: AllowedCallers = EVERYBODY,
) -> Handler:
    async def handle(request: Request) -> Response:
        # A page of any site may post to a scheduler on its reader's machine, without reading the answer.
        if "origin" in request.headers:
            return PlainTextResponse("no browser is answered: the request has an Origin\n", 403)
        # Before the body is read: its bytes are memory.
        if explain_refusal := callers.explain_refusal(request):
            return PlainTextResponse(f"{explain_refusal}\n", 403)
        try:
            async with bodies.read(request) as body:
                return await answer_body(request, body)
        except RefusedBodyError as refused:
            return refused.to_response()
        except NotReadyError as problem:
            # To the API server this is a webhook that can't be reached, and its `failurePolicy` says what follows.
            # Of an error it shows the user only the message of a Status, not a text.
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable"}
            return Response(
                orjson.dumps(status | {"message": str(problem), "code": 503}), 503, media_type="application/json"
            )

    async def answer_body(request: Request, body: bytes) -> Response:
        # HAMi's status and text (route.go); its webhook answers an empty body with a review.
        if not body and not takes_nothing:
            return PlainTextResponse(extender_protocol.NO_BODY, 400)
        # When the body is here: the time of a slow client is not that of the answer.
        began = time.perf_counter()
        reply = await answer(body, _parse_trace(request))
        seconds.observe(time.perf_counter() - began)
        return Response(reply, media_type="application/json")

    return handle


def _parse_trace(request: Request) -> Trace:
    """Parse the trace of a caller that traces its calls; Starlette has headers as Latin-1."""
    if not (parent := request.headers.get("traceparent", "")):
        return NO_TRACE
    # It may come in several lines, which are one list.
    state = ",".join(request.headers.getlist("tracestate"))
    return trace_of_caller(parent.encode("latin-1"), state.encode("latin-1"))


async def _answer_unknown(request: Request, _: Exception) -> Response:
    routes = "POST /filter, POST /bind, POST /webhook, GET /healthz, GET /readyz, GET /metrics"
    return PlainTextResponse(f"nothing is at {request.url.path}; there are: {routes}\n", 404)

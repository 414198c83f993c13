"""Puts the API together: memory, topic, index, routes. ``create_app`` connects to nothing before the app starts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import httpx
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from api.attempt_lookup import Attempts
from api.handlers.health import readiness
from api.handlers.placements import Placements
from api.handlers.schedulerlog import Endpoints
from api.http import errors
from api.http.openapi_page import POLICY, documentation
from api.http.request_guard import Guard
from api.index.client import IndexDownError, IndexRefusedError, OpenSearch, PointInTimeGoneError
from api.memory.attempts_consumer import AttemptsTopic
from api.memory.latest_attempts import LatestAttempts
from api.metrics import Metrics
from api.routes import routes
from api.settings import Settings

log = logging.getLogger(__name__)

ABOUT: Final = (
    "Why was a pod placed where it is, or why is it still pending? Who holds which device, and since when? What is "
    "wrong with a placement? The latest attempts come from memory within milliseconds of the decision; older ones, "
    "and everything that is a list, from the index, about a second later. "
    "Every error is JSON with `error` (the cause) and `next` (what to do). Times are RFC 3339 in UTC."
)


def create_app(settings: Settings, transport: httpx.AsyncBaseTransport | None = None) -> FastAPI:
    """``transport`` stands in for the network to OpenSearch."""
    metrics = Metrics()
    latest = LatestAttempts(settings.api_cached_pods, settings.api_cached_bytes)
    topic = AttemptsTopic(settings.kafka_bootstrap_servers, latest, settings.api_replayed_records)
    metrics.watch(latest, topic.state)
    client = httpx.AsyncClient(
        base_url=settings.opensearch_url, timeout=settings.opensearch_timeout_seconds, transport=transport
    )
    index = OpenSearch(client, metrics.observe_index)
    attempts = Attempts(latest, topic.state, index, metrics)
    endpoints = Endpoints(
        attempts=attempts,
        index=index,
        metrics=metrics,
        readiness=partial(readiness, topic.state, index),
    )
    app = FastAPI(
        title="schedulerlog",
        version="1.0",
        description=ABOUT,
        routes=[*routes(endpoints, Placements(attempts, index)), Route("/docs", _docs), Route("/", _docs)],
        middleware=[Middleware(Guard, metrics=metrics)],
        exception_handlers=_handlers(),
        lifespan=_lifespan(topic, client),
        # Both pages of FastAPI load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.latest, app.state.topic = latest, topic.state
    return app


def _lifespan(topic: AttemptsTopic, client: httpx.AsyncClient) -> Any:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        following = asyncio.create_task(topic.follow())
        following.add_done_callback(_say_if_it_died)
        yield
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await client.aclose()

    return lifespan


def _say_if_it_died(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception():
        log.error("the topic of attempts is no longer followed", exc_info=task.exception())


def _handlers() -> dict[Any, Any]:
    return {
        errors.ApiError: errors.on_api_error,
        HTTPException: errors.on_http_error,
        RequestValidationError: errors.on_invalid,
        IndexDownError: _on_index_down,
        IndexRefusedError: _on_index_refused,
        PointInTimeGoneError: _on_expired,
        Exception: errors.on_failure,
    }


async def _on_index_down(request: Request, error: IndexDownError) -> Response:
    said = errors.UnavailableError(
        f"OpenSearch does not answer, and memory alone does not hold the answer ({error})",
        "Try again; GET /readyz says when OpenSearch is back. The latest pods are answered meanwhile.",
    )
    return await errors.on_api_error(request, said)


async def _on_index_refused(_: Request, error: IndexRefusedError) -> Response:
    log.error("OpenSearch refused a request of ours: %s", error)
    step = (
        "May the user in SCHEDULERLOG_OPENSEARCH_URL read schedulerlog-*, and are the index templates of this version "
        "there (`python -m pipeline provision`)? If so, please report it."
    )
    return errors.error_response(500, f"OpenSearch refused the request ({error})"[:500], step)


async def _on_expired(request: Request, _: PointInTimeGoneError) -> Response:
    said = "continue has expired: a search is kept for 5 minutes after each page"
    return await errors.on_api_error(request, errors.ExpiredError(said, "Search again, without continue."))


async def _docs(request: Request) -> Response:
    return HTMLResponse(documentation(request.app.openapi()), headers={"Content-Security-Policy": POLICY})

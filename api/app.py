"""Builds the application: memory, the topic's consumer, index and routes.

``create_app`` opens no connection; the application connects when the server starts it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

from opensearchpy import AsyncOpenSearch
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.answers.change_search import ChangeSearch
from api.answers.exclusion import Exclusion
from api.answers.fact_collector import FactCollector
from api.answers.object_api import ObjectApi, Objects
from api.answers.object_lists import ObjectLists
from api.answers.ready_answers import SHARE_OF_MEMORY, AnswerRecorder, ReadyAnswers
from api.answers.report_collector import ReportCollector
from api.authority.checks import CallerChecks
from api.authority.reviewer import Reviewer
from api.handlers.admission import AdmissionHandlers
from api.handlers.alerts import AlertHandlers
from api.handlers.capacity import CapacityHandlers
from api.handlers.cluster_file import ClusterFileHandlers
from api.handlers.clusters import ClusterHandlers
from api.handlers.comparisons import ComparisonHandlers
from api.handlers.diagnosis import DiagnosisHandlers
from api.handlers.health import HealthHandlers
from api.handlers.names import NameHandlers
from api.handlers.not_found import UnknownNameError
from api.handlers.pending import PendingHandlers
from api.handlers.placements import PlacementHandlers
from api.handlers.plans import PlanHandlers
from api.handlers.recordings import RecordingHandlers
from api.handlers.schedulerlog import SchedulerlogHandlers
from api.handlers.simulation import SimulationHandlers
from api.handlers.suggestions import SuggestionHandlers
from api.handlers.trends import ReportHandlers, TrendHandlers
from api.handlers.waiting import WaitingHandlers
from api.handlers.waiting_page import PendingList
from api.handlers.watching import WatchHandlers
from api.handlers.workloads import WorkloadHandlers
from api.http import errors
from api.http.aggregated.adapter import AggregatedApi, list_discovery_routes
from api.http.openapi_page import list_document_routes
from api.http.request_guard import RequestGuard
from api.http.request_spans import RequestSpans, describe_path
from api.index.clusters import read_releases
from api.index.namespaces import NamespacesInIndex
from api.index.reading.client import IndexDownError, IndexProbe, IndexRefusedError, OpenSearch
from api.memory.alert_memory import AlertMemory, AlertsTopic
from api.memory.attempts_consumer import AttemptsTopic
from api.memory.change_log import ChangeLog, bound_log
from api.memory.cluster_devices import ClusterDevices, NodeStatesTopic, RecentStates
from api.memory.known_names import KnownNames
from api.memory.latest_attempts import LatestAttempts
from api.memory.pods_consumer import PodsTopic
from api.memory.topic_follower import TopicFollower, TopicState
from api.memory.wait_log import WaitLog
from api.metrics import Metrics
from api.routes import list_routes
from api.settings import Settings
from api.ui.answers import Answers
from api.ui.page_routes import list_page_routes
from api.ui.page_session import PageSession
from api.watch.shared_events import SharedEvents
from api.watch.streams import Streams
from engine.fit import device_config
from engine.summaries.node_pools import list_pools, parse_pools
from runtime.http.server_tls import Certificates
from runtime.kubernetes.credentials import choose_loader, is_configured
from runtime.opensearch.client import create_client
from runtime.signals import end
from runtime.telemetry.spans import NO_TRACING, Tracing


def export(
    metrics: Metrics, latest: LatestAttempts, topic: TopicState, watching: WatchHandlers, index: OpenSearch
) -> None:
    """Let ``metrics`` read what memory, consumer, watches and index count."""
    pods = latest.pods
    metrics.watch("cached_pods", lambda: len(pods))
    metrics.watch("cache_bytes", lambda: pods.size_bytes)
    metrics.watch("cache_evicted_pods", lambda: pods.evicted)
    metrics.watch("topic_lag_records", lambda: topic.lag_records)
    metrics.watch("topic_following", lambda: float(topic.is_following(time.monotonic())))
    metrics.watch("topic_records", lambda: topic.records)
    metrics.watch("topic_rejected_records", lambda: topic.rejected)
    metrics.watch("watches", lambda: len(watching.streams))
    metrics.watch("watchable_changes", lambda: len(watching.log) + len(watching.waits))
    metrics.watch("watchable_bytes", lambda: watching.log.size_bytes + watching.waits.size_bytes)
    metrics.watch("watches_cut_off", lambda: watching.streams.cut_off)
    metrics.watch("opensearch_refused_requests", lambda: index.refused)
    metrics.watch("watch_objects", lambda: watching.shared.objects_made)


log = logging.getLogger(__name__)

INDEX_ERRORS: Final = (IndexDownError, IndexRefusedError)
_CONNECTIONS: Final = 100
"""Maximum number of connections to each node of OpenSearch."""


def create_app(
    settings: Settings,
    client: AsyncOpenSearch | None = None,
    tracing: Tracing = NO_TRACING,
    reviewer: Reviewer | None = None,
    certificates: Certificates | None = None,
    objects: Objects | None = None,
) -> Starlette:
    """Create the application. ``client``, ``reviewer`` and ``objects`` replace those of the settings in tests.

    Raises ``SettingError``.

    ``certificates`` are those of the server that the application runs in.
    ``app.state.latest`` and ``app.state.topic`` are its memory and the state of its consumer, ``app.state.devices``
    the clusters' devices, ``app.state.registry`` has its metrics, and the HTTP protocol first calls
    ``app.state.ready_answer``.
    """
    metrics = Metrics()
    latest = LatestAttempts(settings.api_cached_pods, settings.api_cache_size)
    bounds = bound_log(settings.api_cached_pods, settings.api_cache_size)
    changes, waits = ChangeLog(*bounds), WaitLog(*bounds)
    records = settings.api_replayed_records
    topic = AttemptsTopic(settings, latest, records, metrics.observe_delay, tracing, changes, waits)
    pods_topic = PodsTopic(settings, waits, latest.namespaces, records)
    # One client for all requests: its connections to OpenSearch are kept open and shared.
    client = client or create_client(settings, max_connections=_CONNECTIONS)
    index_seconds = settings.opensearch_timeout.total_seconds()
    recent_states = RecentStates()
    index = OpenSearch(client, metrics.observe_index, index_seconds, recent_states.find)
    checks = CallerChecks(settings, certificates, reviewer, latest.namespaces)
    metrics.watch("certificates_current", lambda: float(not checks.problem))
    object_api: ObjectApi | None = None
    if objects is None:
        load = choose_loader(settings.kubeconfig, settings.context)
        objects = object_api = ObjectApi(load, is_configured=is_configured(settings.kubeconfig))
    devices, alerts = ClusterDevices(device_config.read_shipped()), AlertMemory()
    attempts = AttemptLookup(latest, topic.state, index, metrics)
    namespaces = NamespacesInIndex(index, latest.namespaces.add)
    ready = ReadyAnswers(
        attempts,
        latest.namespaces,
        checks.knows_right,
        settings.cluster_name,
        metrics,
        tracing,
        settings.api_cached_pods,
        settings.api_cache_size // SHARE_OF_MEMORY,
    )
    watching = WatchHandlers(attempts, changes, waits, pods_topic.state, SharedEvents(), Streams(settings.api_watches))
    waiting = PendingList(index, devices)
    lists = ObjectLists(objects, latest.namespaces)
    facts = FactCollector(index, objects, settings.cluster_name, lists)
    change_search = ChangeSearch(index, objects, settings.cluster_name)
    simulation = SimulationHandlers(devices, change_search, lists)
    suggestions = SuggestionHandlers(attempts, devices, change_search, facts)
    names = NameHandlers(KnownNames(latest, waits, devices))
    export(metrics, latest, topic.state, watching, index)
    api_routes = list_routes(
        SchedulerlogHandlers(attempts, index, watching),
        ComparisonHandlers(attempts),
        DiagnosisHandlers(
            attempts,
            facts,
            Exclusion(devices, index),
            suggestions,
        ),
        WorkloadHandlers(attempts, facts),
        suggestions,
        AdmissionHandlers(index, devices),
        simulation,
        CapacityHandlers(simulation),
        PlanHandlers(lists, simulation, waiting),
        PlacementHandlers(attempts, index),
        PendingHandlers(waiting, watching),
        WaitingHandlers(index, waiting),
        TrendHandlers(index, parse_pools(settings.node_pools)),
        ReportHandlers(ReportCollector(index, devices.vendors)),
        AlertHandlers(alerts),
        names,
        ClusterHandlers(index, parse_pools(settings.node_pools), list_pools(settings.node_pools)),
        ClusterFileHandlers(attempts, index),
        RecordingHandlers(index),
        HealthHandlers(topic.state, pods_topic.state, IndexProbe(index), metrics),
    )
    aggregated = [Middleware(AggregatedApi)] if settings.api_aggregated else []
    discovery = list_discovery_routes() if settings.api_aggregated else []
    app = Starlette(
        routes=[*api_routes, *list_document_routes(), *discovery],
        middleware=[
            *([Middleware(RequestSpans, tracing=tracing)] if tracing.is_on else []),
            Middleware(AnswerRecorder, ready=ready),
            *aggregated,
            Middleware(PageSession, frame_ancestors=settings.api_frame_ancestors),
            Middleware(RequestGuard, metrics=metrics, index_seconds=index_seconds),
            checks.middleware,
        ],
        exception_handlers=_map_exceptions() | {UnknownNameError: names.answer_unknown},
        lifespan=_lifespan(
            [
                topic,
                pods_topic,
                NodeStatesTopic(settings, devices, recent_states, partial(read_releases, index.search), INDEX_ERRORS),
                AlertsTopic(settings, alerts),
                *([namespaces] if checks.reviewer else []),
            ],
            client,
            checks,
            object_api,
        ),
    )
    # A path that ends with a slash is another path: a redirect would hide the mistake from scripts.
    app.router.redirect_slashes = False
    pages_of_ui = list_page_routes(
        Answers(app.router),
        attempts,
        devices.vendors,
        settings.api_audience,
        has_login=checks.reviewer is not None,
    )
    app.router.routes.extend(pages_of_ui)
    app.state.default_cluster, app.state.objects = settings.cluster_name, objects
    app.state.latest, app.state.topic, app.state.pods_topic = latest, topic.state, pods_topic.state
    app.state.devices, app.state.changes, app.state.waits, app.state.alerts = devices, changes, waits, alerts
    app.state.ready_answer, app.state.namespaces_in_index = ready.answer, namespaces
    app.state.registry, app.state.authorities = metrics.registry, checks.authorities
    return app


def _lifespan(
    readers: Sequence[TopicFollower | NodeStatesTopic | AlertsTopic | NamespacesInIndex],
    client: AsyncOpenSearch,
    checks: CallerChecks,
    object_api: ObjectApi | None,
) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with checks.running(), object_api or nullcontext(), stores():
            yield

    @asynccontextmanager
    async def stores() -> AsyncIterator[None]:
        # Not awaited: the API answers from the index while memory is being replayed.
        consumers = [asyncio.create_task(reader.follow()) for reader in readers]
        for task in consumers:
            task.add_done_callback(_log_failure)
        yield
        # By now uvicorn has answered or cut off every request, so that nobody uses the client any more.
        await end(consumers)
        await client.close()

    return lifespan


def _log_failure(task: "asyncio.Task[None]") -> None:
    # The API still answers, but from an aging memory: for attempts, /readyz and the metrics show that too.
    if not task.cancelled() and task.exception():
        log.error(
            "a consumer of attempts, pods, node states, alerts or namespaces failed; restart the API",
            exc_info=task.exception(),
        )


def _map_exceptions() -> dict[Any, Any]:
    return {
        errors.ApiError: errors.on_api_error,
        HTTPException: errors.on_http_error,
        errors.InvalidParametersError: errors.on_invalid_parameters,
        IndexDownError: _on_index_down,
        IndexRefusedError: _on_index_refused,
        # Starlette raises it again after the answer, and uvicorn logs the traceback.
        Exception: errors.on_failure,
    }


async def _on_index_down(request: Request, error: IndexDownError) -> Response:
    unavailable = errors.UnavailableError(
        f"OpenSearch does not answer, and the answer is not in memory ({error})",
        "Try again; GET /readyz shows when OpenSearch is back. The latest pods are answered meanwhile.",
    )
    return await errors.on_api_error(request, unavailable)


async def _on_index_refused(request: Request, error: IndexRefusedError) -> Response:
    log.error("OpenSearch refused a request of the API: %s", error, extra=describe_path(request.path_params))
    next_step = (
        "Check that the user SCHEDULERLOG_OPENSEARCH_USERNAME, or that of the certificate, may read schedulerlog-*, "
        "and that this version's index templates exist (`schedulerlog pipeline provision`). Otherwise please report it."
    )
    cause = f"OpenSearch refused the request ({error})"[:500]
    return errors.to_error_response(500, cause, next_step, code=errors.INDEX_REFUSED)

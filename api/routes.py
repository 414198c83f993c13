"""The list of routes: each path with its handler, the model of its answer, its headers and its errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, get_args

from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.handlers.cluster_file import ClusterFileHandlers
from api.handlers.clusters import ClusterHandlers
from api.handlers.comparisons import ComparisonHandlers
from api.handlers.diagnosis import DiagnosisHandlers
from api.handlers.health import Alive, HealthHandlers, Readiness
from api.handlers.pending import PendingHandlers
from api.handlers.placements import PlacementHandlers
from api.handlers.reports import ReportHandlers
from api.handlers.schedulerlog import SchedulerlogHandlers
from api.handlers.suggestions import SuggestionHandlers
from api.handlers.trends import TrendHandlers
from api.handlers.waiting import WaitingHandlers
from api.http.cluster import CLUSTER, CLUSTER_PARAMETER, ROOT
from api.http.endpoints import endpoint_of
from api.http.errors import PROBLEM
from api.http.openapi_document import operation_id
from api.http.pagination import CONTINUE_HEADER, TOTAL_HEADER
from api.http.tables import CSV
from api.http.watch_query import WATCHED
from schemas.answers.attempts import (
    Error,
    FullSchedulerLog,
    History,
    SchedulerLog,
    Search,
)
from schemas.answers.clusters import Clusters
from schemas.answers.comparisons import AttemptComparison, NodeComparison, PodScores
from schemas.answers.diagnosis import Diagnosis
from schemas.answers.nodes import Nodes, Schedulers
from schemas.answers.placements import Findings, NodeOccupancy, NodeState, PodObservations, PodPlacements
from schemas.answers.reports import FailureReport
from schemas.answers.suggestions import Suggestions
from schemas.answers.trends import Trends
from schemas.answers.waiting import DeviceRefusals, PendingAnswer, PodsWaiting

POD: Final = "/namespaces/{namespace}/pods/{name}"
NODE: Final = "/nodes/{node}"

_ERRORS: Final = {
    400: "The request is wrong: a name that is not RFC 1123, an unknown or malformed parameter.",
    404: "Nothing is recorded under this name; `next` lists what to check.",
    410: "The page to continue from no longer exists: ask for the first page again.",
    503: "OpenSearch is down and the answer is not in memory; try again.",
}
_PAGE: Final = (400, 410, 503)
_PAGE_OF_ONE: Final = (400, 404, 410, 503)
"""Of a list about one pod, node or attempt, which may be unknown."""
_PAGED: Final = {
    "Link": {
        "description": 'rel="next": the path of the next page. Absent on the last page.',
        "schema": {"type": "string"},
    },
    CONTINUE_HEADER: {
        "description": "The token of the next page, to be given as ?continue=. Absent on the last page.",
        "schema": {"type": "string"},
    },
}
_ERROR_CONTENT: Final = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}
_COUNTED: Final = _PAGED | {
    TOTAL_HEADER: {"description": "The number of items on all pages.", "schema": {"type": "integer"}}
}
_TAGGED: Final = _COUNTED | {
    "ETag": {
        "description": "Changes with every attempt, and when more becomes known of this one.",
        "schema": {"type": "string"},
    }
}


def routes(
    schedulerlog: SchedulerlogHandlers,
    comparisons: ComparisonHandlers,
    diagnosis: DiagnosisHandlers,
    suggestions: SuggestionHandlers,
    placements: PlacementHandlers,
    pending: PendingHandlers,
    waiting: WaitingHandlers,
    trends: TrendHandlers,
    reports: ReportHandlers,
    clusters: ClusterHandlers,
    cluster_file: ClusterFileHandlers,
    health: HealthHandlers,
) -> list[Route]:
    """Every route of the API, in the order of the documentation."""
    of_cluster = [
        *_attempts(schedulerlog),
        *_comparisons(comparisons),
        _About(POD + "/diagnosis", diagnosis.diagnosis, Diagnosis, "Why a pod waits", {}, (400, 404, 503)),
        _About(
            POD + "/suggestions", suggestions.suggestions, Suggestions, "What would have to change", {}, (400, 404, 503)
        ),
        *_waiting(pending, waiting),
        _About("/trends", trends.trends, Trends, "Counts over time", {}, (400, 503), CSV),
        _About("/reports/failures", reports.failures, FailureReport, "Report of failures", {}, (400, 503), CSV),
        *_placements(placements),
        _About("/nodes", clusters.nodes, Nodes, "Nodes", _COUNTED, (400, 503)),
        _About("/cluster-file", cluster_file.at, None, "A cluster as a file", {}, (400, 404, 503), "application/yaml"),
        _About(
            "/attempts/{attempt_id}/cluster-file",
            cluster_file.of_attempt,
            None,
            "The cluster of an attempt as a file",
            {},
            (400, 404, 503),
            "application/yaml",
        ),
        _About("/schedulers", clusters.schedulers, Schedulers, "Schedulers", {}, (400, 503)),
    ]
    return [
        *(route for about in of_cluster for route in about.routes(ROOT)),
        *_About("/clusters", clusters.clusters, Clusters, "Clusters", {}, (400, 503)).routes(ROOT),
        *(route for about in of_cluster for route in about.routes(CLUSTER)),
        *_About("/healthz", health.healthz, Alive, "Liveness", {}, ()).routes(""),
        *_About("/readyz", health.readyz, Readiness, "Readiness", {}, ()).routes(""),
        *_About("/metrics", health.metrics_text, None, "Metrics", {}, (), "text/plain").routes(""),
    ]


def _attempts(schedulerlog: SchedulerlogHandlers) -> list["_About"]:
    log = SchedulerLog | FullSchedulerLog
    return [
        _About(
            POD + "/schedulerlog",
            schedulerlog.schedulerlog,
            log,
            "A pod's schedulerlog",
            _TAGGED,
            _PAGE_OF_ONE,
            has_watch=True,
        ),
        _About(
            POD + "/schedulerlog/history", schedulerlog.history, History, "A pod's history", _PAGED, (400, 404, 503)
        ),
        _About("/attempts/{attempt_id}", schedulerlog.attempt, log, "An attempt", _TAGGED, _PAGE_OF_ONE),
        _About("/schedulerlogs", schedulerlog.search, Search, "Search attempts", _COUNTED, _PAGE, has_watch=True),
    ]


def _comparisons(comparisons: ComparisonHandlers) -> list["_About"]:
    known = (400, 404, 503)
    two = "Two attempts side by side"
    return [
        _About(POD + "/scores", comparisons.scores, PodScores, "Why a node was chosen", {}, known),
        _About(POD + "/comparison", comparisons.nodes, NodeComparison, "Two nodes side by side", {}, known),
        _About("/attempts/{attempt_id}/comparison", comparisons.attempt_comparison, AttemptComparison, two, {}, known),
    ]


def _waiting(pending: PendingHandlers, waiting: WaitingHandlers) -> list["_About"]:
    return [
        _About("/pending", pending.pending, PendingAnswer, "Pending pods", _COUNTED, _PAGE, CSV, has_watch=True),
        _About("/pods", waiting.pods, PodPlacements | PodsWaiting, "Pods by state", _COUNTED, _PAGE),
        _About("/refusals", waiting.refusals, DeviceRefusals, "Attempts that a device refused", _PAGED, (400, 503)),
    ]


def _placements(placements: PlacementHandlers) -> list["_About"]:
    on_node = NodeOccupancy | PodPlacements
    return [
        _About("/findings", placements.findings, Findings, "Findings", _COUNTED, _PAGE),
        _About(POD + "/findings", placements.findings_of_pod, Findings, "A pod's findings", _COUNTED, _PAGE_OF_ONE),
        _About(
            POD + "/occupancy", placements.occupancy_of_pod, PodPlacements, "A pod's placements", _COUNTED, _PAGE_OF_ONE
        ),
        _About(
            POD + "/observations",
            placements.observations_of_pod,
            PodObservations,
            "A pod's observations",
            _COUNTED,
            _PAGE_OF_ONE,
        ),
        _About(NODE, placements.node, NodeState, "A node", {}, (400, 404, 503)),
        _About(
            NODE + "/occupancy", placements.occupancy_of_node, on_node, "A node's occupancy", _COUNTED, _PAGE_OF_ONE
        ),
    ]


@dataclass(frozen=True, slots=True)
class _About:
    """A path with its handler, the model of its answer, its title, its headers and its errors.

    ``model`` describes the answer, None a text; handlers return finished bytes, which FastAPI does not validate again.
    """

    path: str
    handler: Callable[..., Any]
    model: Any
    title: str
    headers: dict[str, Any]
    errors: tuple[int, ...]
    text_type: str = ""
    """The media type of an answer that is a text: the only one where there is no model."""
    has_watch: bool = False

    def routes(self, prefix: str) -> list[Route]:
        """The routes for GET and for HEAD, which the OpenAPI document leaves out."""
        responses: dict[int | str, dict[str, Any]] = {
            status: {"content": _ERROR_CONTENT, "description": _ERRORS[status]} for status in self.errors
        }
        # Without it FastAPI documents 422, which is never answered here. As a model it brings the schema into the
        # document; FastAPI builds another validator for each use of a model, which took half of the start.
        responses["default"] = {"model": Error, "description": "Every other error."}
        if self.headers:
            responses[200] = {"headers": self.headers}
        content: dict[str, Any] = WATCHED if self.has_watch else {}
        if self.text_type:
            content = content | {self.text_type: {"schema": {"type": "string"}}}
        if content:
            responses[200] = responses.get(200, {}) | {"content": content}
        names_cluster = prefix == CLUSTER
        endpoint = endpoint_of(self.handler)
        # FastAPI sees the path's own parameters alone.
        parameters = [*endpoint.query, *([CLUSTER_PARAMETER] if names_cluster else [])]
        get = APIRoute(
            prefix + self.path,
            endpoint.call,
            methods=["GET"],
            response_model=self.model,
            # A class with another type would document errors by it, which are JSON everywhere.
            response_class=JSONResponse if self.model else Response,
            responses=responses,
            response_description="The answer.",
            summary=self.title,
            operation_id=operation_id("GET", self.path, is_list=_is_list(self.model), in_cluster=names_cluster),
            openapi_extra={"parameters": parameters} if parameters else None,
        )
        get.app = endpoint.app or get.app
        # FastAPI, unlike Starlette, does not answer HEAD on a route for GET.
        head = Route(get.path, endpoint.call, methods=["HEAD"])
        head.app = get.app
        return [get, head]


def _is_list(model: Any) -> bool:
    """Has the answer items? Of several answers the first counts."""
    first = next(iter(get_args(model)), model)
    return "items" in getattr(first, "model_fields", ())

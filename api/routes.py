"""The list of routes: each path with its handler, the model of its answer, its headers and its errors."""

from collections.abc import Callable
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, PlainTextResponse

from api.handlers.health import Alive, HealthHandlers, Readiness
from api.handlers.placements import PlacementHandlers
from api.handlers.schedulerlog import SchedulerlogHandlers
from api.http.pagination import CONTINUE_HEADER, TOTAL_HEADER
from schemas.answers.attempts import Error, FullSchedulerLog, History, SchedulerLog, Search
from schemas.answers.placements import Findings, NodeOccupancy, NodeState, PodObservations, PodPlacements

POD: Final = "/api/v1/namespaces/{namespace}/pods/{name}"
NODE: Final = "/api/v1/nodes/{node}"

_ERRORS: Final = {
    400: "The request is wrong: a name that is not RFC 1123, an unknown or malformed parameter.",
    404: "Nothing is recorded under this name; `next` lists what to check.",
    410: "The page to continue from no longer exists: ask for the first page again.",
    503: "OpenSearch is down and the answer is not in memory; try again.",
}
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
_COUNTED: Final = _PAGED | {
    TOTAL_HEADER: {"description": "The number of items on all pages.", "schema": {"type": "integer"}}
}
_TAGGED: Final = _COUNTED | {
    "ETag": {
        "description": "Changes with every attempt, and when more becomes known of this one.",
        "schema": {"type": "string"},
    }
}


def routes(schedulerlog: SchedulerlogHandlers, placements: PlacementHandlers, health: HealthHandlers) -> list[APIRoute]:
    """Every route of the API, in the order of the documentation."""
    return [
        *_get(
            POD + "/schedulerlog",
            schedulerlog.schedulerlog,
            SchedulerLog | FullSchedulerLog,
            "A pod's schedulerlog",
            _TAGGED,
            (400, 404, 410, 503),
        ),
        *_get(POD + "/schedulerlog/history", schedulerlog.history, History, "A pod's history", _PAGED, (400, 404, 503)),
        *_get("/api/v1/schedulerlogs", schedulerlog.search, Search, "Search attempts", _COUNTED, (400, 410, 503)),
        *_get("/api/v1/findings", placements.findings, Findings, "Findings", _COUNTED, (400, 410, 503)),
        *_get_page(POD + "/findings", placements.findings_of_pod, Findings, "A pod's findings"),
        *_get_page(POD + "/occupancy", placements.occupancy_of_pod, PodPlacements, "A pod's placements"),
        *_get_page(POD + "/observations", placements.observations_of_pod, PodObservations, "A pod's observations"),
        *_get(NODE, placements.node, NodeState, "A node", {}, (400, 404, 503)),
        *_get_page(
            NODE + "/occupancy", placements.occupancy_of_node, NodeOccupancy | PodPlacements, "A node's occupancy"
        ),
        *_get("/healthz", health.healthz, Alive, "Liveness", {}, ()),
        *_get("/readyz", health.readyz, Readiness, "Readiness", {}, ()),
        *_get("/metrics", health.metrics_text, None, "Metrics", {}, ()),
    ]


def _get_page(path: str, handler: Callable[..., Any], model: Any, title: str) -> list[APIRoute]:
    """A list about one pod or node, in pages."""
    return _get(path, handler, model, title, _COUNTED, (400, 404, 410, 503))


def _get(
    path: str, handler: Callable[..., Any], model: Any, title: str, headers: dict[str, Any], errors: tuple[int, ...]
) -> list[APIRoute]:
    """The routes for GET and for HEAD, which the OpenAPI document leaves out.

    ``model`` describes the answer; handlers return finished bytes, which FastAPI does not validate again.
    """
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Error, "description": _ERRORS[status]} for status in errors
    }
    # Without it FastAPI documents 422, which is never answered here.
    responses["default"] = {"model": Error, "description": "Every other error."}
    if headers:
        responses[200] = {"headers": headers}
    return [
        APIRoute(
            path,
            handler,
            methods=["GET"],
            response_model=model,
            response_class=JSONResponse if model else PlainTextResponse,
            responses=responses,
            response_description="The answer.",
            summary=title,
            operation_id=title.lower().replace("'", "").replace(" ", "-"),
        ),
        # FastAPI, unlike Starlette, does not answer HEAD on a route for GET.
        APIRoute(path, handler, methods=["HEAD"], response_model=None, include_in_schema=False),
    ]

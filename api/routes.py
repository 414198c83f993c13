"""The routes, as a list: every path, what it answers with, and which errors it gives."""

from collections.abc import Callable
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, PlainTextResponse

from api.handlers.health import Alive, Readiness
from api.handlers.placements import Placements
from api.handlers.schedulerlog import Endpoints
from api.http.pagination import CONTINUE, TOTAL
from schemas.answers.attempts import Error, FullSchedulerLog, History, SchedulerLog, Search
from schemas.answers.placements import Findings, NodeOccupancy, NodeState, PodObservations, PodPlacements

POD: Final = "/api/v1/namespaces/{namespace}/pods/{name}"
NODE: Final = "/api/v1/nodes/{node}"

_WORDS: Final = {
    400: "The request is wrong: a name that is not RFC 1123, an unknown or malformed parameter.",
    404: "Nothing is known of it; next says what to check.",
    410: "The place to continue from is gone: ask for the first page again.",
    503: "OpenSearch is down and memory does not hold the answer; try again.",
}
_PAGED: Final = {
    "Link": {"description": 'rel="next": the next page. Absent on the last one.', "schema": {"type": "string"}},
    CONTINUE: {"description": "What to give as ?continue= for the next page.", "schema": {"type": "string"}},
}
_COUNTED: Final = _PAGED | {TOTAL: {"description": "How many there are before paging.", "schema": {"type": "integer"}}}
_TAGGED: Final = _COUNTED | {
    "ETag": {"description": "Changes with the attempt and with what is known of it.", "schema": {"type": "string"}}
}


def routes(endpoints: Endpoints, placements: Placements) -> list[APIRoute]:
    return [
        *_get(
            POD + "/schedulerlog",
            endpoints.schedulerlog,
            SchedulerLog | FullSchedulerLog,
            "What became of a pod",
            _TAGGED,
            (400, 404, 410, 503),
        ),
        *_get(POD + "/schedulerlog/history", endpoints.history, History, "A pod's history", _PAGED, (400, 404, 503)),
        *_get("/api/v1/schedulerlogs", endpoints.search, Search, "Search attempts", _COUNTED, (400, 410, 503)),
        *_get("/api/v1/findings", placements.findings, Findings, "Findings", _COUNTED, (400, 410, 503)),
        *_list(POD + "/findings", placements.findings_of_pod, Findings, "A pod's findings"),
        *_list(POD + "/occupancy", placements.occupancy_of_pod, PodPlacements, "Where a pod was"),
        *_list(POD + "/observations", placements.observations_of_pod, PodObservations, "What was seen of a pod"),
        *_get(NODE, placements.node, NodeState, "A node", {}, (400, 404, 503)),
        *_list(
            NODE + "/occupancy",
            placements.occupancy_of_node,
            NodeOccupancy | PodPlacements,
            "Who held a node's devices",
        ),
        *_get("/healthz", endpoints.healthz, Alive, "Alive?", {}, ()),
        *_get("/readyz", endpoints.readyz, Readiness, "Ready?", {}, ()),
        *_get("/metrics", endpoints.metrics_text, None, "Metrics", {}, ()),
    ]


def _list(path: str, endpoint: Callable[..., Any], model: Any, title: str) -> list[APIRoute]:
    """Of one pod or node, in pages."""
    return _get(path, endpoint, model, title, _COUNTED, (400, 404, 410, 503))


def _get(
    path: str, endpoint: Callable[..., Any], model: Any, title: str, headers: dict[str, Any], errors: tuple[int, ...]
) -> list[APIRoute]:
    """The route, and the one for HEAD, which says nothing of its own in the OpenAPI document."""
    known: dict[int | str, dict[str, Any]] = {
        status: {"model": Error, "description": _WORDS[status]} for status in errors
    }
    known["default"] = {"model": Error, "description": "Every other error."}
    if headers:
        known[200] = {"headers": headers}
    name = title.lower().rstrip("?").replace("'", "").replace(" ", "-")
    return [
        APIRoute(
            path,
            endpoint,
            methods=["GET"],
            response_model=model,
            response_class=JSONResponse if model else PlainTextResponse,
            responses=known,
            response_description="What was asked for.",
            summary=title,
            operation_id=name,
        ),
        APIRoute(
            path,
            endpoint,
            methods=["HEAD"],
            response_model=None,
            include_in_schema=False,
        ),
    ]

"""A path of the API with what the OpenAPI document says of it, as routes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.http.cluster import CLUSTER, CLUSTER_PARAMETER
from api.http.endpoints import endpoint_of
from api.http.errors import PROBLEM
from api.http.openapi_document import operation_id
from api.http.watch_query import WATCHED
from schemas.answers.attempts import Error

_ERRORS: Final = {
    400: "The request is wrong: a name that is not RFC 1123, an unknown or malformed parameter.",
    404: "Nothing is recorded under this name; `next` lists what to check.",
    410: "The page to continue from no longer exists: ask for the first page again.",
    413: "What was sent is too long.",
    503: "OpenSearch is down and the answer is not in memory; try again.",
}
_ERROR_CONTENT: Final = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}


@dataclass(frozen=True, slots=True)
class Operation:
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
    body: Mapping[str, Any] | None = None
    """What is sent, as OpenAPI's ``content`` has it; with one it is POST that is answered."""

    def routes(self, prefix: str) -> list[Route]:
        """The routes for GET and for HEAD, which the OpenAPI document leaves out; or the one for POST."""
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
        method = "POST" if self.body else "GET"
        extra: dict[str, Any] = {"parameters": parameters} if parameters else {}
        if self.body:
            extra["requestBody"] = {"required": True, "content": self.body}
        get = APIRoute(
            prefix + self.path,
            endpoint.call,
            methods=[method],
            response_model=self.model,
            # A class with another type would document errors by it, which are JSON everywhere.
            response_class=JSONResponse if self.model else Response,
            responses=responses,
            response_description="The answer.",
            summary=self.title,
            operation_id=operation_id(method, self.path, is_list=_is_list(self.model), in_cluster=names_cluster),
            openapi_extra=extra or None,
        )
        get.app = endpoint.app or get.app
        if self.body:
            return [get]
        # FastAPI, unlike Starlette, does not answer HEAD on a route for GET.
        head = Route(get.path, endpoint.call, methods=["HEAD"])
        head.app = get.app
        return [get, head]


def _is_list(model: Any) -> bool:
    """Has the answer items? Of several answers the first counts."""
    first = next(iter(get_args(model)), model)
    return "items" in getattr(first, "model_fields", ())

"""A path of the API: its handler, and what the OpenAPI document says of it."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.routing import Route

from api.http.cluster import CLUSTER, CLUSTER_PARAMETER
from api.http.endpoints import Endpoint, Handler
from api.http.errors import PROBLEM
from api.http.openapi_document import Described, operation_id, schema_of
from api.http.watch_query import WATCHED
from schemas.answers.attempts import Error
from schemas.json_types import Json

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

    ``model`` describes the answer, None a text; handlers return finished bytes.
    """

    path: str
    handler: Handler
    model: Any
    title: str
    headers: Json
    errors: tuple[int, ...]
    text_type: str = ""
    """The media type of an answer that is a text: the only one where there is no model."""
    has_watch: bool = False
    body: Mapping[str, Any] | None = None
    """What is sent, as OpenAPI's ``content`` has it; with one it is POST that is answered."""

    @property
    def method(self) -> str:
        return "POST" if self.body else "GET"

    @property
    def is_list(self) -> bool:
        """Has the answer items? Of several answers the first counts."""
        first = next(iter(get_args(self.model)), self.model)
        return "items" in getattr(first, "model_fields", ())


class OperationRoute(Route):
    """``operation`` below ``prefix``. HEAD is answered where GET is."""

    def __init__(self, prefix: str, operation: Operation) -> None:
        self._endpoint, self._operation = Endpoint(operation.handler), operation
        self._names_cluster = prefix == CLUSTER
        super().__init__(prefix + operation.path, self._endpoint.answer, methods=[operation.method])

    def described(self) -> Described:
        """What the OpenAPI document says of it."""
        about = self._operation
        schema, schemas = schema_of(about.model) if about.model else ({}, {})
        name = operation_id(about.method, about.path, is_list=about.is_list, in_cluster=self._names_cluster)
        described: Json = {
            "summary": about.title,
            "description": inspect.cleandoc(about.handler.__doc__ or ""),
            "operationId": name,
            "responses": _responses(about, schema),
        }
        if parameters := [*self._endpoint.parameters(), *([CLUSTER_PARAMETER] if self._names_cluster else [])]:
            described["parameters"] = parameters
        if about.body:
            described["requestBody"] = {"required": True, "content": about.body}
        return Described(self.path, about.method.lower(), described, schemas | schema_of(Error)[1])


def _responses(about: Operation, schema: Json) -> Json:
    content: Json = {"application/json": {"schema": schema}} if schema else {}
    content |= WATCHED if about.has_watch else {}
    content |= {about.text_type: {"schema": {"type": "string"}}} if about.text_type else {}
    answer: Json = {"description": "The answer.", "content": content}
    errors = {str(status): {"content": _ERROR_CONTENT, "description": _ERRORS[status]} for status in about.errors}
    default = {"content": _ERROR_CONTENT, "description": "Every other error."}
    return {"200": answer | ({"headers": about.headers} if about.headers else {})} | errors | {"default": default}

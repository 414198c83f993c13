"""Operations: each is a path of the API with its handler and its description in the OpenAPI document."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.routing import Route

from api.http.cluster import CLUSTER, CLUSTER_PARAMETER
from api.http.endpoints import Endpoint, Handler
from api.http.errors import PROBLEM
from api.http.openapi_document import Described, derive_operation_id, derive_schema
from api.http.watch_query import WATCHED
from schemas.answers.attempts import Error
from schemas.json_types import Json

_ERRORS: Final = {
    400: "The request is wrong: a name that is not RFC 1123, or an unknown or malformed parameter.",
    404: "Nothing is recorded under this name; `next` lists what to check.",
    410: "The page to continue from no longer exists: ask for the first page again.",
    413: "The body of the request is too long.",
    503: "OpenSearch is down and the answer is not in memory; try again.",
}
_ERROR_CONTENT: Final = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Error.__name__}"}}}


@dataclass(frozen=True, slots=True)
class Operation:
    """Path with its handler, the model of its answer, its title, its headers and its errors.

    ``model`` describes the answer; it is None for a text. Handlers return finished bytes.
    """

    path: str
    handler: Handler
    model: Any
    title: str
    headers: Json
    errors: tuple[int, ...]
    text_type: str = ""
    """Media type of the answer as text; without a model the only one."""
    has_watch: bool = False
    body: Mapping[str, Any] | None = None
    """Body of the request as OpenAPI's ``content``; an operation with a body is a POST."""

    @property
    def method(self) -> str:
        return "POST" if self.body else "GET"

    @property
    def is_list(self) -> bool:
        """True if the answer has ``items``; of several models the first counts."""
        first = next(iter(get_args(self.model)), self.model)
        return "items" in getattr(first, "model_fields", ())


class OperationRoute(Route):
    """Route of ``operation`` below ``prefix``. It answers HEAD like GET."""

    def __init__(self, prefix: str, operation: Operation) -> None:
        self._endpoint, self._operation = Endpoint(operation.handler), operation
        self._names_cluster = prefix == CLUSTER
        super().__init__(prefix + operation.path, self._endpoint.answer, methods=[operation.method])

    def describe(self) -> Described:
        """Describe the operation for the OpenAPI document."""
        operation = self._operation
        schema, schemas = derive_schema(operation.model) if operation.model else ({}, {})
        name = derive_operation_id(
            operation.method, operation.path, is_list=operation.is_list, in_cluster=self._names_cluster
        )
        description: Json = {
            "summary": operation.title,
            "description": inspect.cleandoc(operation.handler.__doc__ or ""),
            "operationId": name,
            "responses": _describe_responses(operation, schema),
        }
        if parameters := [*self._endpoint.describe_parameters(), *([CLUSTER_PARAMETER] if self._names_cluster else [])]:
            description["parameters"] = parameters
        if operation.body:
            description["requestBody"] = {"required": True, "content": operation.body}
        return Described(self.path, operation.method.lower(), description, schemas | derive_schema(Error)[1])


def _describe_responses(operation: Operation, schema: Json) -> Json:
    content: Json = {"application/json": {"schema": schema}} if schema else {}
    content |= WATCHED if operation.has_watch else {}
    content |= {operation.text_type: {"schema": {"type": "string"}}} if operation.text_type else {}
    answer: Json = {"description": "The answer.", "content": content}
    errors = {str(status): {"content": _ERROR_CONTENT, "description": _ERRORS[status]} for status in operation.errors}
    default = {"content": _ERROR_CONTENT, "description": "Any other error."}
    return (
        {"200": answer | ({"headers": operation.headers} if operation.headers else {})} | errors | {"default": default}
    )

"""A handler as an endpoint: the path, query and cluster of a request are read as the handler declares them.

The parameters of the OpenAPI document come from the same declarations.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from api.http.cluster import Cluster, requested_cluster
from api.http.errors import InvalidParametersError
from api.http.openapi_document import WithoutNull
from api.http.query_base import Query
from schemas.json_types import Json

Handler = Callable[..., Awaitable[Response]]
M = TypeVar("M", bound=BaseModel)
_NO_PARAMETERS: Final = ("request", "return")


class Endpoint:
    """Answers a request. ``handler`` takes ``request`` and, by their types, a ``Cluster`` and a ``Query``; each other
    parameter is one of the path.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        # ``inspect.signature`` takes ten times as long, and there are sixty endpoints.
        annotations = {name: hint for name, hint in handler.__annotations__.items() if name not in _NO_PARAMETERS}
        self._queries = {name: hint for name, hint in annotations.items() if _is_query(hint)}
        self._clusters = [name for name, hint in annotations.items() if hint is Cluster]
        self._path = {
            name: _adapter(hint)
            for name, hint in annotations.items()
            if name not in self._queries and name not in self._clusters
        }

    async def answer(self, request: Request) -> Response:
        """Raises ``InvalidParametersError``, and what the handler raises."""
        values: dict[str, Any] = {name: requested_cluster(request) for name in self._clusters}
        values |= _read_path(request, self._path)
        values |= {name: read_query(request, model) for name, model in self._queries.items()}
        return await self._handler(request, **values)

    def parameters(self) -> list[Json]:
        """The parameters of path and query, as the OpenAPI document has them; without the cluster."""
        path = [
            {"name": name, "in": "path", "required": True, "schema": schema, "description": schema["description"]}
            for name, schema in ((name, adapter.json_schema()) for name, adapter in self._path.items())
        ]
        return path + [parameter for model in self._queries.values() for parameter in documented(model)]


def _is_query(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Query)


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    # A few types are the path's parameters of all handlers.
    return TypeAdapter(annotation)


def _read_path(request: Request, paths: Mapping[str, TypeAdapter[Any]]) -> dict[str, Any]:
    """Raises ``InvalidParametersError`` for all of them that are wrong."""
    values, wrong = {}, list[Any]()
    for name, adapter in paths.items():
        try:
            values[name] = adapter.validate_python(request.path_params[name])
        except ValidationError as error:
            wrong += [{**detail, "loc": ("path", name)} for detail in error.errors(include_url=False)]
    if wrong:
        raise InvalidParametersError(wrong)
    return values


def read_query(request: Request, model: type[M]) -> M:
    """The parameters of the query. Raises ``InvalidParametersError``."""
    given = request.query_params
    values: dict[str, Any] = dict(given)
    for name in _lists(model) & values.keys():
        values[name] = given.getlist(name)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidParametersError(error.errors(include_url=False)) from None


@functools.cache
def _lists(model: type[BaseModel]) -> frozenset[str]:
    fields = model.model_fields.items()
    return frozenset(field.alias or name for name, field in fields if get_origin(field.annotation) is list)


def documented(model: type[BaseModel]) -> list[Json]:
    """The fields of the model as parameters of an OpenAPI document."""
    schema = model.model_json_schema(schema_generator=WithoutNull)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": field,
            "description": field.get("description", ""),
        }
        for name, field in schema["properties"].items()
    ]

"""Endpoints: each reads path, query and cluster of a request as its handler declares them.

The parameters of the OpenAPI document come from the same declarations.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from api.http.cluster import Cluster, parse_cluster
from api.http.errors import InvalidParametersError
from api.http.openapi_document import WithoutNull
from api.http.param_types import Query
from schemas.json_types import Json

Handler = Callable[..., Awaitable[Response]]
M = TypeVar("M", bound=BaseModel)
_NO_PARAMETERS: Final = ("request", "return")


class Endpoint:
    """Handler with the parameters that it declares.

    ``handler`` takes ``request`` and, by their types, a ``Cluster`` and a ``Query``; every other parameter comes from
    the path.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        # ``inspect.signature`` takes ten times as long, and there are sixty endpoints.
        annotations = {name: hint for name, hint in handler.__annotations__.items() if name not in _NO_PARAMETERS}
        self._queries = {name: hint for name, hint in annotations.items() if _is_query(hint)}
        self._clusters = [name for name, hint in annotations.items() if hint is Cluster]
        self._path = {
            name: _build_adapter(hint)
            for name, hint in annotations.items()
            if name not in self._queries and name not in self._clusters
        }

    async def answer(self, request: Request) -> Response:
        """Answer a request. Raises ``InvalidParametersError``, and what the handler raises."""
        values: dict[str, Any] = {name: parse_cluster(request) for name in self._clusters}
        values |= _read_path(request, self._path)
        values |= {name: read_query(request, model) for name, model in self._queries.items()}
        return await self._handler(request, **values)

    def describe_parameters(self) -> list[Json]:
        """Describe the parameters of path and query for the OpenAPI document, without the cluster."""
        path = [
            {"name": name, "in": "path", "required": True, "schema": schema, "description": schema["description"]}
            for name, schema in ((name, adapter.json_schema()) for name, adapter in self._path.items())
        ]
        return path + [parameter for model in self._queries.values() for parameter in describe_query(model)]


def _is_query(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Query)


@functools.cache
def _build_adapter(annotation: Any) -> TypeAdapter[Any]:
    # The path parameters of all handlers share a few types.
    return TypeAdapter(annotation)


def _read_path(request: Request, paths: Mapping[str, TypeAdapter[Any]]) -> dict[str, Any]:
    """Read the parameters of the path. Raises ``InvalidParametersError`` that names all wrong ones."""
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
    """Read the parameters of the query. Raises ``InvalidParametersError``."""
    parameters = request.query_params
    values: dict[str, Any] = dict(parameters)
    for name in _list_repeatable(model) & values.keys():
        values[name] = parameters.getlist(name)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidParametersError(error.errors(include_url=False)) from None


@functools.cache
def _list_repeatable(model: type[BaseModel]) -> frozenset[str]:
    fields = model.model_fields.items()
    return frozenset(field.alias or name for name, field in fields if get_origin(field.annotation) is list)


def describe_query(model: type[BaseModel]) -> list[Json]:
    """Describe the fields of the model as parameters of an OpenAPI document."""
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

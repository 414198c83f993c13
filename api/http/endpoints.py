"""A handler as an endpoint: path, query and cluster are read here, and FastAPI documents them.

FastAPI's own reading of a request, parameter by parameter, takes as long as decoding and rendering a pod's attempt. The
same declarations are read once, at the start; the document's parameters come from them, too.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

from fastapi import Request, params
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.routing import request_response
from starlette.types import ASGIApp

from api.http.cluster import RequestedCluster, requested_cluster

M = TypeVar("M", bound=BaseModel)


class Endpoint(NamedTuple):
    call: Callable[..., Any]
    """What FastAPI documents: the handler with the path's parameters alone, or with all that is not read here."""
    query: list[dict[str, Any]]
    """The parameters of the query, as the OpenAPI document has them."""
    app: ASGIApp | None
    """What answers in the place of FastAPI's; None where a parameter is read by FastAPI."""


def endpoint_of(handler: Callable[..., Any]) -> Endpoint:
    """``handler`` takes the request, parameters of the path (``Path``), a query (``Query``), and the cluster."""
    signature = inspect.signature(handler)
    annotations = {name: each.annotation for name, each in signature.parameters.items()}
    queries = {name: get_args(each)[0] for name, each in annotations.items() if _is(params.Query, each)}
    paths: dict[str, TypeAdapter[Any]] = {
        name: TypeAdapter(each) for name, each in annotations.items() if _is(params.Path, each)
    }
    clusters = [name for name, each in annotations.items() if each is RequestedCluster]
    if annotations.keys() - {*queries, *paths, *clusters, "request"}:
        return Endpoint(handler, [], None)

    async def answer(request: Request) -> Response:
        values: dict[str, Any] = {name: requested_cluster(request) for name in clusters}
        values |= _read_path(request, paths)
        values |= {name: read_query(request, model) for name, model in queries.items()}
        answered: Response = await handler(request, **values)
        return answered

    @functools.wraps(handler)
    async def documented_call(request: Request) -> Response:
        return await answer(request)

    own = [each for name, each in signature.parameters.items() if name in paths or name == "request"]
    vars(documented_call)["__signature__"] = signature.replace(parameters=own)
    parameters = [each for model in queries.values() for each in documented(model)]
    return Endpoint(documented_call, parameters, request_response(answer))


def _is(kind: type, annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and any(isinstance(each, kind) for each in get_args(annotation)[1:])


def _read_path(request: Request, paths: Mapping[str, TypeAdapter[Any]]) -> dict[str, Any]:
    """Raises ``RequestValidationError`` for all of them that are wrong."""
    values, wrong = {}, []
    for name, adapter in paths.items():
        try:
            values[name] = adapter.validate_python(request.path_params[name])
        except ValidationError as error:
            wrong += [{**each, "loc": ("path", name)} for each in error.errors(include_url=False)]
    if wrong:
        raise RequestValidationError(wrong)
    return values


def read_query(request: Request, model: type[M]) -> M:
    """The parameters of the query. Raises ``RequestValidationError``."""
    given = request.query_params
    values: dict[str, Any] = dict(given)
    for name in _lists(model) & values.keys():
        values[name] = given.getlist(name)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


@functools.cache
def _lists(model: type[BaseModel]) -> frozenset[str]:
    fields = model.model_fields.items()
    return frozenset(each.alias or name for name, each in fields if get_origin(each.annotation) is list)


# Most models are the query of several paths, each with and without a cluster's name: a schema of pydantic for each use
# took more than half of what building the routes takes.
@functools.cache
def documented(model: type[BaseModel]) -> list[dict[str, Any]]:
    """The fields of the model as parameters of an OpenAPI document."""
    schema = model.model_json_schema()
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _without_null(each),
            "description": each.get("description", ""),
        }
        for name, each in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the default of what may be left out: a query can't hold null."""
    return {key: value for key, value in schema.items() if key != "default" or value is not None}

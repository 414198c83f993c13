"""A route that FastAPI documents and pydantic reads.

FastAPI walks an endpoint's declaration again for each request, which costs more than everything else together
(``make bench``). Here the declaration is read once: path parameters become validators, the query its model. What is
accepted stays what the OpenAPI document says, because both come from the same annotations.
"""

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self, get_args

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError, create_model
from starlette.responses import Response

Endpoint = Callable[..., Coroutine[Any, Any, Response]]


class DirectRoute(APIRoute):
    """Endpoints take the request, path parameters by name, and one query model."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Endpoint = self.endpoint
        declared = Declared.of(endpoint)

        async def handle(request: Request) -> Response:
            try:
                given = declared.read(request)
            except ValidationError as error:
                raise RequestValidationError(error.errors(include_url=False, include_context=False)) from None
            return await endpoint(**given)

        return handle


@dataclass(frozen=True, slots=True)
class Declared:
    """What an endpoint takes."""

    takes_request: bool
    in_path: type[BaseModel]
    """The path's parameters as the fields of a model."""
    query_name: str
    query: type[BaseModel]
    lists: frozenset[str]
    """Parameters that may be repeated."""

    @classmethod
    def of(cls, endpoint: Endpoint) -> Self:
        kinds = {name: each.annotation for name, each in inspect.signature(endpoint).parameters.items()}
        takes_request = kinds.pop("request", None) is Request
        ((name, query),) = [(name, get_args(kind)[0]) for name, kind in kinds.items() if _is_model(get_args(kind)[0])]
        lists = frozenset(each for each, field in query.model_fields.items() if isinstance(field.default, list))
        del kinds[name]
        in_path: Any = {each: (kind, ...) for each, kind in kinds.items()}
        return cls(takes_request, create_model("InPath", **in_path), name, query, lists)

    def read(self, request: Request) -> dict[str, Any]:
        """The endpoint's arguments. Raises ``ValidationError``, with the parameter's name in its place."""
        given: dict[str, Any] = {"request": request} if self.takes_request else {}
        given |= self.in_path.model_validate(request.path_params).__dict__
        asked = request.query_params
        said = {name: asked.getlist(name) if name in self.lists else value for name, value in asked.items()}
        return given | {self.query_name: self.query.model_validate(said)}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)

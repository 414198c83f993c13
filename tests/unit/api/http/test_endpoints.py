"""An endpoint reads what its handler declares, and documents the same."""

from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.http.cluster import RequestedCluster
from api.http.endpoints import documented, endpoint_of
from api.http.errors import on_invalid_parameters
from api.http.param_types import NamespaceInPath, PodInPath
from api.http.query_params import NodeQuery, SchedulerlogQuery


async def handler(
    request: Request,
    cluster: RequestedCluster,
    namespace: NamespaceInPath,
    name: PodInPath,
    query: Annotated[SchedulerlogQuery, Query()],
) -> Response:
    """What FastAPI documents."""
    given: dict[str, Any] = query.model_dump(exclude_unset=True, by_alias=True)
    return JSONResponse([request.method, cluster.name, namespace, name, given])


@pytest.fixture
def client() -> httpx.AsyncClient:
    endpoint = endpoint_of(handler)
    route = Route("/{cluster}/{namespace}/{name}", endpoint.call)
    assert endpoint.app
    route.app = endpoint.app
    app = FastAPI(routes=[route], exception_handlers={RequestValidationError: on_invalid_parameters})
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_path_query_and_cluster_are_read(client: httpx.AsyncClient) -> None:
    answer = await client.get("/home/llm/train-0?node=a,b&node=c&limit=5")
    assert answer.json() == ["GET", "home", "llm", "train-0", {"node": ["a", "b", "c"], "limit": 5}]


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("/home/Team/Train", "parameter namespace: 'Team' has 'T'"),
        ("/home/Team/Train", "parameter name: 'Train' has 'T'"),
        ("/home/llm/train?limit=0", "parameter limit: Input should be greater than or equal to 1"),
        ("/home/llm/train?node=A", "parameter node: 'A' has 'A'"),
        ("/home/llm/train?x=1&x=2", "parameter 'x' is unknown here"),
    ],
)
async def test_what_is_wrong_is_named(client: httpx.AsyncClient, path: str, cause: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 400
    assert cause in answer.json()["error"]


def test_fastapi_sees_the_paths_parameters_alone() -> None:
    endpoint = endpoint_of(handler)
    route = FastAPI().router
    route.add_api_route("/{namespace}/{name}", endpoint.call)
    assert endpoint.call.__doc__ == handler.__doc__
    assert [each["name"] for each in endpoint.query][:3] == ["node", "status", "limit"]


def test_a_parameter_is_documented_as_its_model_reads_it() -> None:
    (at,) = documented(NodeQuery)
    assert (at["name"], at["in"], at["required"]) == ("at", "query", False)
    assert "default" not in at["schema"]


def test_what_else_a_handler_takes_is_read_by_fastapi() -> None:
    async def with_header(accept: Annotated[str, Header()] = "") -> Response:
        return Response(accept)

    endpoint = endpoint_of(with_header)
    assert (endpoint.call, endpoint.app) == (with_header, None)

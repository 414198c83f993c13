"""An endpoint reads what its handler declares, and documents the same."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.http.cluster import Cluster
from api.http.endpoints import Endpoint, describe_query
from api.http.errors import InvalidParametersError, on_invalid_parameters
from api.http.param_types import NamespaceInPath, PodInPath
from api.http.query_params import NodeQuery, SchedulerlogQuery


async def handle(
    request: Request, cluster: Cluster, namespace: NamespaceInPath, name: PodInPath, query: SchedulerlogQuery
) -> Response:
    parameters: dict[str, Any] = query.model_dump(exclude_unset=True, by_alias=True)
    return JSONResponse([request.method, cluster.name, namespace, name, parameters])


@pytest.fixture
def client() -> httpx.AsyncClient:
    route = Route("/{cluster}/{namespace}/{name}", Endpoint(handle).answer)
    handlers: dict[Any, Any] = {InvalidParametersError: on_invalid_parameters}
    app = Starlette(routes=[route], exception_handlers=handlers)
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


def test_the_parameters_of_path_and_query_are_documented_in_the_order_of_the_handler() -> None:
    parameters = Endpoint(handle).describe_parameters()
    assert [(parameter["name"], parameter["in"]) for parameter in parameters][:4] == [
        ("namespace", "path"),
        ("name", "path"),
        ("node", "query"),
        ("status", "query"),
    ]
    assert parameters[0]["schema"] == {"type": "string", "description": "The pod's namespace.", "examples": ["default"]}


def test_a_parameter_is_documented_as_its_model_reads_it() -> None:
    (parameter,) = describe_query(NodeQuery)
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("at", "query", False)
    assert "default" not in parameter["schema"]

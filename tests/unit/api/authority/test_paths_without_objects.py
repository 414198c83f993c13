"""Probes, metrics, the documentation, and the application without authentication."""

import pytest
from fastapi.routing import APIRoute

from api.handlers.health import Alive
from kube.errors import KubeApiError
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import POD, Caller, with_needed_query
from tests.support.harness.guarded_api import READS_LLM, Guarded


async def test_what_is_public_says_no_more_than_whether_it_is_alive_and_ready(api: Guarded) -> None:
    assert (await api.get("/healthz")).json() == Alive().model_dump()
    assert (await api.get("/readyz")).json() == {"ready": True, "parts": None}
    api.reviews.answer = KubeApiError(0, "it can't be reached")
    assert await api.status("/readyz", {"Authorization": "Bearer x"}) == 200


@pytest.mark.parametrize(
    "path",
    [
        "/metrics", "/docs", "/", "/openapi.json", "/api/v1/clusters", "/no/such/path",
        # Row 76: what is public is a whole path.
        "/metrics/x", "/healthz/x", "/healthz/../metrics", "/healthz/%2e%2e/metrics",
        "/readyz/", "/healthz;/metrics", "//healthz",
    ],
)  # fmt: skip
async def test_every_other_path_needs_a_caller(api: Guarded, path: str) -> None:
    # A path that is escaped is refused before that.
    assert (await api.get(path)).status_code == (400 if "%" in path else 401)


async def test_metrics_and_the_parts_of_readiness_need_the_right_to_their_paths(api: Guarded) -> None:
    alice = api.reviews.caller("alice", READS_LLM)
    prom = api.reviews.caller("prom", Grant("prom", "get", "/metrics"), Grant("prom", "get", "/readyz"))
    assert [await api.status("/metrics", header) for header in (alice, prom)] == [403, 200]
    assert (await api.client.get("/readyz", headers=prom)).json()["parts"]
    assert (await api.client.get("/readyz", headers=alice)).json()["parts"] is None


async def test_the_documentation_is_for_everybody_who_is_known(api: Guarded) -> None:
    header = api.reviews.caller("alice")
    assert [await api.status(path, header) for path in ("/docs", "/", "/openapi.json")] == [200] * 3
    assert await api.status("/no/such/path", header) == 404


async def test_a_handler_that_asks_for_no_right_is_answered_with_403(api: Guarded) -> None:
    async def forgetful() -> dict[str, str]:
        return {"secret": "of another tenant"}

    api.app.add_api_route("/forgotten", forgetful, include_in_schema=False)
    header = api.reviews.caller("all", Grant("all", "get", "pods"), Grant("all", "list", "pods"))
    answer = await api.client.get("/forgotten", headers=header)
    assert answer.status_code == 403
    assert "secret" not in answer.text


async def test_each_route_asks_for_a_right(api: Guarded) -> None:
    header = api.reviews.caller("nothing")
    values = {"namespace": "llm", "name": "deepseek-a", "node": "n1", "attempt_id": "f00", "cluster": "default"}
    routes = [route for route in api.app.routes if isinstance(route, APIRoute) and "/api/v1/" in route.path]
    paths = [route.path for route in routes if "GET" in (route.methods or ())]
    assert len(paths) > 20
    for path in set(paths) - {"/api/v1/clusters"}:
        asked = with_needed_query(path, path.format(**values))
        assert await api.status(asked, header) == 403, asked
    assert api.searches == [] or all("f00" in str(each.content) for each in api.searches)


async def test_a_pod_is_simulated_for_who_may_read_it(api: Guarded) -> None:
    def pod(namespace: str) -> bytes:
        return f"{{kind: Pod, metadata: {{name: new, namespace: {namespace}}}, spec: {{}}}}".encode()

    async def posted(body: bytes, headers: dict[str, str]) -> int:
        return (await api.client.post("/api/v1/simulate", content=body, headers=headers)).status_code

    alice = api.reviews.caller("alice", READS_LLM)
    assert await posted(pod("llm"), {}) == 401
    # No node states have been read here.
    assert [await posted(pod(namespace), alice) for namespace in ("llm", "other")] == [503, 403]
    # What is wrong with a body is for who sent it.
    assert await posted(b"kind: Node", alice) == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9090", 200),
        ("127.0.0.1", 200),
        ("[::1]:9090", 200),
        ("LOCALHOST", 200),
        ("rebound.example:9090", 421),
        ("127.0.0.1.rebound.example", 421),
        ("", 421),
    ],
)
async def test_without_authentication_only_local_names_are_answered(
    without_authentication: Caller, host: str, status: int
) -> None:
    answer = await without_authentication.get("/healthz", Host=host)
    assert answer.status_code == status
    assert "vary" not in answer.headers


async def test_a_continue_token_is_its_callers_alone(api: Guarded) -> None:
    alice, carol = [api.reviews.caller(name, Grant(name, "get", "pods", "llm")) for name in ("alice", "carol")]
    page = await api.client.get(POD + "?detail=full&limit=1", headers=alice)
    token = page.headers["x-continue"]
    path = f"{POD}?detail=full&limit=1&continue={token}"
    assert [await api.status(path, header) for header in (alice, carol)] == [200, 400]

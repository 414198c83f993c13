"""Probes, metrics, the documentation, and the application without authentication."""

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.handlers.health import Alive
from api.http.operation import OperationRoute
from runtime.kubernetes.errors import KubeApiError
from runtime.settings.addresses import HostPort
from tests.support.builders.events import a_summary
from tests.support.fakes.reviews import Grant
from tests.support.harness import api_app
from tests.support.harness.api_app import POD, Caller, answer_nothing, with_needed_query
from tests.support.harness.guarded_api import READS_LLM, Guarded


async def test_what_is_public_says_no_more_than_whether_it_is_alive_and_ready(api: Guarded) -> None:
    assert (await api.get("/healthz")).json() == Alive().model_dump()
    assert (await api.get("/readyz")).json() == {"ready": True, "parts": None}
    api.reviews.answer = KubeApiError(0, "it can't be reached")
    assert await api.get_status("/readyz", {"Authorization": "Bearer x"}) == 200


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
    alice = api.reviews.build_header("alice", READS_LLM)
    prom = api.reviews.build_header("prom", Grant("prom", "get", "/metrics"), Grant("prom", "get", "/readyz"))
    assert [await api.get_status("/metrics", header) for header in (alice, prom)] == [403, 200]
    assert (await api.client.get("/readyz", headers=prom)).json()["parts"]
    assert (await api.client.get("/readyz", headers=alice)).json()["parts"] is None


async def test_the_documentation_is_for_everybody_who_is_known(api: Guarded) -> None:
    header = api.reviews.build_header("alice")
    assert [await api.get_status(path, header) for path in ("/docs", "/", "/openapi.json")] == [200] * 3
    assert await api.get_status("/no/such/path", header) == 404


async def test_a_handler_that_asks_for_no_right_is_answered_with_403(api: Guarded) -> None:
    async def answer_without_right(_: Request) -> Response:
        return JSONResponse({"secret": "of another tenant"})

    api.app.add_route("/forgotten", answer_without_right)
    header = api.reviews.build_header("all", Grant("all", "get", "pods"), Grant("all", "list", "pods"))
    answer = await api.client.get("/forgotten", headers=header)
    assert answer.status_code == 403
    assert "secret" not in answer.text


async def test_each_route_asks_for_a_right(api: Guarded) -> None:
    header = api.reviews.build_header("nothing")
    values = {
        "namespace": "llm",
        "word": "job",
        "name": "deepseek-a",
        "node": "n1",
        "attempt_id": "f00",
        "cluster": "default",
    }
    routes = [route for route in api.app.routes if isinstance(route, OperationRoute) and "/api/v1/" in route.path]
    paths = [route.path for route in routes if "GET" in (route.methods or ())]
    assert len(paths) > 20
    for path in set(paths) - {"/api/v1/clusters"}:
        url = with_needed_query(path, path.format(**values))
        if path.endswith("/names"):
            # Every caller is answered, with the names that the caller may read.
            assert (await api.get(url, **header)).json()["items"] == []
            continue
        assert await api.get_status(url, header) == 403, url
    assert api.searches == [] or all("f00" in str(search.content) for search in api.searches)
    body = b"{kind: Pod, metadata: {name: new, namespace: other}, spec: {}}"
    posts = {route.path for route in routes if "POST" in (route.methods or ())}
    assert {path.rpartition("/")[2] for path in posts} == {"capacity", "defragmentation", "simulate"}
    for path in posts:
        answer = await api.client.post(path.format(**values), content=body, headers=header)
        assert answer.status_code == 403, path


async def test_a_pod_is_simulated_for_who_may_read_it(api: Guarded) -> None:
    def build_pod(namespace: str) -> bytes:
        return f"{{kind: Pod, metadata: {{name: new, namespace: {namespace}}}, spec: {{}}}}".encode()

    async def post(body: bytes, headers: dict[str, str]) -> int:
        return (await api.client.post("/api/v1/simulate", content=body, headers=headers)).status_code

    alice = api.reviews.build_header("alice", READS_LLM)
    assert await post(build_pod("llm"), {}) == 401
    # No node states have been read here.
    assert [await post(build_pod(namespace), alice) for namespace in ("llm", "other")] == [503, 403]
    # The API server decides about the namespace of the path.
    below = "/apis/schedulerlog.io/v1alpha1/namespaces/{}/simulations"
    statuses = [
        (await api.client.post(below.format(path), content=build_pod(namespace), headers=alice)).status_code
        for path, namespace in (("llm", "llm"), ("other", "llm"), ("other", "other"))
    ]
    assert statuses == [503, 400, 403]
    # What is wrong with a body is for who sent it.
    assert await post(b"kind: Node", alice) == 400


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


async def test_l6_only_the_names_that_are_set_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API that is published on loopback, as by ``docker compose``, listens on all addresses itself."""
    changed = {"api_insecure": True, "api_hosts": "localhost,Api.example", "api_listen": HostPort("0.0.0.0", 80)}  # noqa: S104
    monkeypatch.setattr(api_app, "SETTINGS", api_app.SETTINGS.model_copy(update=changed))
    caller = Caller(answer_nothing)
    hosts = {"localhost:8088": 200, "api.example": 200, "rebound.example:8088": 421, "": 421}
    assert {host: (await caller.get("/healthz", Host=host)).status_code for host in hosts} == hosts


async def test_l6_no_answer_is_kept_framed_or_taken_for_another_type() -> None:
    caller = Caller(answer_nothing)
    caller.remember(a_summary())
    values = {
        "namespace": "llm",
        "word": "job",
        "name": "deepseek-a",
        "node": "n1",
        "attempt_id": "f00",
        "cluster": "default",
    }
    routes = [
        route for route in caller.app.routes if isinstance(route, OperationRoute) and "GET" in (route.methods or ())
    ]
    paths = [with_needed_query(route.path, route.path.format(**values)) for route in routes]
    etag = (await caller.get(POD)).headers["etag"]
    answers = [
        await caller.get(path)
        for path in (*paths, "/docs", "/openapi.json", "/no", "/%", POD + "?limit=x", "/ui/static/no")
    ]
    answers += [await caller.get(POD, **{"If-None-Match": etag}), await caller.get("/healthz", Host="rebound.example")]
    assert {200, 304, 400, 404, 421} <= {answer.status_code for answer in answers}
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        # What has a version may be kept, to ask whether it is still right.
        assert (answer.headers["cache-control"] == "no-cache") == ("etag" in answer.headers)


async def test_l6_a_failure_is_protected_too_and_lists_are_private_where_callers_differ(api: Guarded) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise RuntimeError

    answer = await Caller(fail).get("/api/v1/schedulerlogs")
    assert (answer.status_code, answer.headers["cache-control"]) == (500, "no-store")
    assert answer.headers["x-content-type-options"] == "nosniff"
    answer = await api.client.get("/api/v1/clusters", headers=api.reviews.build_header("alice"))
    assert answer.headers["cache-control"] == "private, no-store"


async def test_l6_readiness_and_errors_name_no_address_of_a_store() -> None:
    def fail_to_connect(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Cannot connect to host index.internal:9200 ssl:default [10.0.0.7]", request=request)

    caller = Caller(fail_to_connect)
    caller.app.state.topic.trouble = "Kafka at kafka-0.internal:9092 does not answer (10.0.0.9:9092: refused)"
    ready = await caller.get("/readyz")
    parts = ready.json()["parts"]
    assert parts["attempts_topic"]["why_not"] == "Kafka at ADDRESS does not answer (ADDRESS: refused)"
    assert "Cannot connect to host ADDRESS ssl:default" in parts["opensearch"]["why_not"]
    for text in (ready.text, (await caller.get("/api/v1/schedulerlogs")).text):
        assert "internal" not in text
        assert "10.0.0" not in text


async def test_a_continue_token_is_its_callers_alone(api: Guarded) -> None:
    alice, carol = [api.reviews.build_header(name, Grant(name, "get", "pods", "llm")) for name in ("alice", "carol")]
    page = await api.client.get(POD + "?detail=full&limit=1", headers=alice)
    token = page.headers["x-continue"]
    path = f"{POD}?detail=full&limit=1&continue={token}"
    assert [await api.get_status(path, header) for header in (alice, carol)] == [200, 400]

"""Two clusters in one API: each path is about one of them, and nothing of one is answered for the other."""

from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from schemas.answers.attempts import Error, FullSchedulerLog
from schemas.answers.nodes import Clusters
from schemas.events import PodRef
from tests.support.builders.events import STARTED, a_summary
from tests.support.harness.api_app import POD, Caller, answer_nothing, hold, with_needed_query

EAST = POD.replace("/api/v1/", "/api/v1/clusters/east/")
ATTEMPT = "/api/v1/attempts/" + "0f" * 16


def iterate_terms(query: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over field and value of every ``term`` clause, at any depth."""
    if isinstance(query, dict):
        yield from query.get("term", {}).items()
        for value in query.values():
            yield from iterate_terms(value)
    elif isinstance(query, list):
        for value in query:
            yield from iterate_terms(value)


async def list_cluster_paths() -> list[str]:
    """List every path to read that names a cluster, with values for its other parameters."""
    paths = (await Caller().get("/openapi.json")).json()["paths"]
    values = {
        "cluster": "east",
        "namespace": "llm",
        "word": "job",
        "name": "deepseek-a",
        "node": "node1",
        "attempt_id": "0f" * 16,
    }
    return [
        with_needed_query(path, path.format(**values))
        for path in paths
        if path.startswith("/api/v1/clusters/{cluster}/") and "get" in paths[path]
    ]


async def test_every_path_about_a_cluster_is_there_with_and_without_its_name() -> None:
    paths = set((await Caller().get("/openapi.json")).json()["paths"]) - {"/api/v1/clusters"}
    named = {path for path in paths if path.startswith("/api/v1/clusters/{cluster}/")}
    assert named
    assert {path.replace("/clusters/{cluster}", "") for path in named} == {
        path for path in paths - named if path.startswith("/api/v1/")
    }


async def test_every_search_is_for_the_documents_of_one_cluster() -> None:
    bodies: list[Any] = []

    def record(request: httpx.Request) -> httpx.Response:
        bodies.append(orjson.loads(request.content))
        return answer_nothing(request)

    caller = Caller(record)
    for path in await list_cluster_paths():
        for named, cluster in ((path, "east"), (path.replace("/clusters/east", ""), "default")):
            bodies.clear()
            await caller.get(named)
            # Workloads and drains are answered from objects, alerts from their topic, names from memory.
            assert bodies or "/workloads/" in path or path.endswith(("/alerts", "/drain", "/names", "/purchase")), path
            for body in bodies:
                assert ("cluster", cluster) in iterate_terms(body["query"]), path


async def test_equal_pods_of_two_clusters_are_two_pods_in_memory() -> None:
    caller = Caller()
    caller.remember(
        a_summary(["node1"], ended_at=STARTED),
        a_summary(["node2"], ended_at=STARTED, cluster="east", attempt_id="1e" * 16),
    )
    assert [node["name"] for node in (await caller.get(POD)).json()["filter"]["nodes"]] == ["node1"]
    assert [node["name"] for node in (await caller.get(EAST)).json()["filter"]["nodes"]] == ["node2"]
    assert (await caller.get(EAST.replace("east", "west"))).status_code == 404


@pytest.mark.parametrize("name", ["East", "-", "a_b", "e" * 64, "a."])
async def test_what_can_not_be_the_name_of_a_cluster_is_refused(name: str) -> None:
    answer = await Caller().get(EAST.replace("east", name))
    assert answer.status_code == 400
    assert "parameter cluster" in Error.model_validate_json(answer.content).error


async def test_links_lead_to_the_cluster_of_the_request() -> None:
    caller = Caller(hold(a_summary(cluster="east", ended_at=STARTED)))
    (item,) = (await caller.get("/api/v1/clusters/east/schedulerlogs")).json()["items"]
    assert item["schedulerlog"] == EAST
    assert item["attempt"] == "/api/v1/clusters/east/attempts/" + "0f" * 16
    assert (await caller.get(item["attempt"])).status_code == 200


async def test_clusters_are_listed_with_the_default_one_also_before_anything_was_written() -> None:
    (cluster,) = Clusters.model_validate_json((await Caller().get("/api/v1/clusters")).content).items
    assert (cluster.name, cluster.is_default, cluster.last_record_at) == ("default", True, None)

    def answer_counts(_: httpx.Request) -> httpx.Response:
        times = {"first": {"value_as_string": "a"}, "last": {"value_as_string": "b"}}
        return httpx.Response(200, json={"aggregations": {"clusters": {"buckets": [{"key": "east", **times}]}}})

    clusters = Clusters.model_validate_json((await Caller(answer_counts).get("/api/v1/clusters")).content).items
    assert [(item.name, item.is_default, item.path) for item in clusters] == [
        ("default", True, "/api/v1/clusters/default"),
        ("east", False, "/api/v1/clusters/east"),
    ]


async def test_an_attempt_is_answered_from_memory_also_after_its_devices() -> None:
    caller = Caller()
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get(ATTEMPT + "?detail=full&limit=1")
    full = FullSchedulerLog.model_validate_json(answer.content)
    assert (full.detail.attempt_id, full.paging.total) == ("0f" * 16, 2)
    again = await caller.get(answer.links["next"]["url"])
    assert [node["name"] for node in again.json()["filter"]["nodes"]] == ["node2"]
    assert (
        await caller.get(ATTEMPT, **{"If-None-Match": (await caller.get(ATTEMPT)).headers["etag"]})
    ).status_code == 304


async def test_an_attempt_that_another_has_followed_comes_from_the_index() -> None:
    older = a_summary(["node7"], attempt_id="2d" * 16, ended_at=STARTED)
    caller = Caller(hold(older))
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get("/api/v1/attempts/" + "2d" * 16)
    assert [node["name"] for node in answer.json()["filter"]["nodes"]] == ["node7"]


async def test_of_two_attempts_with_a_report_of_one_id_the_one_with_the_id_itself_is_answered() -> None:
    pod = PodRef(namespace="llm", name="other")
    caller = Caller(hold(a_summary(["merged"], attempt_id="3c" * 16), a_summary(["own"], pod=pod)))
    answer = await caller.get(ATTEMPT)
    assert [node["name"] for node in answer.json()["filter"]["nodes"]] == ["own"]


async def test_an_unknown_attempt_is_not_found_and_an_impossible_id_is_refused() -> None:
    answer = await Caller(answer_nothing).get(ATTEMPT)
    assert (answer.status_code, "no attempt 0f0f" in answer.json()["error"]) == (404, True)
    assert (await Caller().get("/api/v1/attempts/a$b")).status_code == 400

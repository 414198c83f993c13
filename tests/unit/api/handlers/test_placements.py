"""Occupancy, nodes and observations: refused parameters, queries to the index, and answers while it is down."""

import httpx
import orjson
import pytest

from schemas.answers.attempts import Error
from tests.support.builders.events import STARTED, a_summary
from tests.support.harness.api_app import Caller, answer_nothing, refuse

POD = "/api/v1/namespaces/llm/pods/deepseek-a"
NODE = "/api/v1/nodes/node1"
LISTS = (POD + "/occupancy", POD + "/observations", NODE + "/occupancy?since=1h")
ALL = (*LISTS, NODE, NODE + "/occupancy")


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        (NODE + "?at=yesterday", "parameter at"),
        (NODE + "?at=2124-01-01T00:00:00Z", "is in the future; leave out `at`"),
        (NODE + "?since=1h", "'since' is unknown here; known are: at"),
        (NODE + "?at=1h&at=2h", "given 2 times"),
        (NODE + "/occupancy?at=1h&since=2h", "give one or the other"),
        (NODE + "/occupancy?at=1h&limit=5", "give one or the other"),
        (NODE + "/occupancy?since=1h&until=2h", "the range is empty"),
        (NODE + "/occupancy?device=", "parameter device"),
        (NODE + "/occupancy?limit=0", "parameter limit"),
        (NODE + "/occupancy?continue=x", "parameter continue"),
        (POD + "/occupancy?at=1h", "'at' is unknown"),
        (POD + "/observations?until=tomorrow", "parameter until"),
        ("/api/v1/nodes/Node1", "parameter node"),
        ("/api/v1/nodes/a_b/occupancy", "parameter node"),
        ("/api/v1/nodes/%2e%2e/occupancy", "percent-encoded"),
    ],
)
async def test_a_wrong_request_names_its_mistake(path: str, cause: str) -> None:
    answer = await Caller().get(path)
    assert answer.status_code == 400
    assert cause in Error.model_validate_json(answer.content).error


@pytest.mark.parametrize("path", ALL)
async def test_without_the_index_the_answer_is_503(path: str) -> None:
    caller = Caller(refuse)
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


@pytest.mark.parametrize("path", ALL)
async def test_an_unknown_pod_or_node_is_not_found_before_anything_was_ever_written(path: str) -> None:
    answer = await Caller(answer_nothing).get(path)
    assert answer.status_code == 404
    assert "schedulerlog pipeline placements" in Error.model_validate_json(answer.content).next


async def test_a_pod_that_was_tried_and_is_on_no_node_yet_has_an_empty_list_of_placements() -> None:
    caller = Caller(answer_nothing)
    caller.remember(a_summary(ended_at=STARTED))
    answer = await caller.get(POD + "/occupancy")
    assert (answer.status_code, answer.json()) == (200, {"total": 0, "items": [], "continue": None})


@pytest.mark.parametrize("path", ALL)
async def test_a_document_of_another_kind_is_named(path: str) -> None:
    def answer_unreadable(_: httpx.Request) -> httpx.Response:
        hits = {"total": {"value": 1}, "hits": [{"_index": "i", "_id": "abc", "_source": {"kind": "x"}, "sort": []}]}
        latest = {"buckets": [{"schedulers": {"buckets": [{"latest": {"hits": hits}}]}}]}
        return httpx.Response(200, json={"hits": hits, "aggregations": {"kinds": latest}})

    answer = await Caller(answer_unreadable).get(path)
    assert answer.status_code == 500
    assert "document abc" in Error.model_validate_json(answer.content).error


async def test_pods_of_a_log_without_namespaces_can_be_requested() -> None:
    answer = await Caller(answer_nothing).get("/api/v1/namespaces/-/pods/a/observations")
    assert answer.status_code == 404


async def test_a_range_selects_the_placements_that_overlap_it() -> None:
    bodies: list[bytes] = []

    def record(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return answer_nothing(request)

    await Caller(record).get(NODE + "/occupancy?device=GPU-1&since=2026-11-21T03:00:00Z&until=2026-11-21T04:00:00Z")
    assert orjson.loads(bodies[0])["query"]["bool"]["filter"] == [
        {"term": {"cluster": "default"}},
        {"term": {"node": "node1"}},
        {"term": {"devices": "GPU-1"}},
        {"bool": {"must_not": [{"range": {"ended_at": {"lte": "2026-11-21T03:00:00.000000Z"}}}]}},
        {"range": {"@timestamp": {"lt": "2026-11-21T04:00:00.000000Z"}}},
    ]


async def test_every_answer_is_described() -> None:
    document = (await Caller().get("/openapi.json")).json()
    for path in (path.partition("?")[0] for path in ALL):
        path = path.replace("/llm/", "/{namespace}/").replace("deepseek-a", "{name}").replace("node1", "{node}")
        operation = document["paths"][path]["get"]
        assert {"200", "400", "404", "503", "default"} <= set(operation["responses"])
        assert all(parameter["description"] for parameter in operation["parameters"])
        assert operation["description"]

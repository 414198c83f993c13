"""Requests against the whole application, without a network."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from schemas.answers.attempts import Error, FullSchedulerLog, SchedulerLog
from schemas.events import PodRef
from tests.support.builders.events import STARTED, a_summary
from tests.support.harness.api_app import POD, Caller, hold, refuse
from tests.support.stress import count_examples


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller()
    caller.remember(a_summary(ended_at=STARTED))
    yield caller
    await caller.client.aclose()


async def test_the_plain_answer_has_exactly_the_fields_of_the_proposal(caller: Caller) -> None:
    answer = await caller.get(POD)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["status", "filter", "bind"]
    assert list(body["filter"]) == ["status", "summary", "nodes"]
    assert list(body["filter"]["nodes"][0]) == ["name", "status", "score", "containers"]
    assert list(body["filter"]["nodes"][0]["containers"][0]) == ["name", "status", "reason"]
    assert list(body["bind"]) == ["status", "summary"]


async def test_a_second_reader_gets_the_same_bytes_and_one_with_the_etag_gets_304(caller: Caller) -> None:
    first, second = await caller.get(POD), await caller.get(POD)
    assert first.content == second.content
    third = await caller.get(POD, **{"If-None-Match": first.headers["etag"]})
    assert (third.status_code, third.content) == (304, b"")


async def test_head_answers_as_get(caller: Caller) -> None:
    assert (await caller.client.head(POD)).headers["etag"] == (await caller.get(POD)).headers["etag"]


async def test_other_parameters_select_other_nodes_of_the_same_attempt(caller: Caller) -> None:
    assert len((await caller.get(POD)).json()["filter"]["nodes"]) == 2
    assert [node["name"] for node in (await caller.get(POD + "?node=node2")).json()["filter"]["nodes"]] == ["node2"]
    assert (await caller.get(POD + "?status=passed")).json()["filter"]["nodes"] == []


async def test_pages_lead_from_one_to_the_next_by_header_and_link(caller: Caller) -> None:
    caller.remember(a_summary([f"node{number}" for number in range(1, 8)], version=2))
    names: list[str] = []
    path: str | None = POD + "?limit=3"
    while path:
        answer = await caller.get(path)
        assert answer.headers["x-total-count"] == "7"
        names += [node["name"] for node in answer.json()["filter"]["nodes"]]
        path = answer.links["next"]["url"] if "next" in answer.links else None
        assert (path is None) == ("x-continue" not in answer.headers)
    assert names == [f"node{number}" for number in range(1, 8)]


async def test_a_page_of_an_attempt_that_was_replaced_is_gone(caller: Caller) -> None:
    token = (await caller.get(POD + "?limit=1")).headers["x-continue"]
    caller.remember(a_summary(version=2))
    answer = await caller.get(f"{POD}?limit=1&continue={token}")
    assert answer.status_code == 410
    assert "new attempt" in answer.json()["error"]


async def test_full_detail_adds_paging_and_the_attempts_id(caller: Caller) -> None:
    full = FullSchedulerLog.model_validate_json((await caller.get(POD + "?detail=full&limit=1")).content)
    assert full.paging.total == 2
    assert full.paging.continue_
    assert full.devices is None
    assert full.detail.attempt_id == "0f" * 16


async def test_the_answer_comes_without_devices_while_the_index_is_down() -> None:
    caller = Caller(refuse)
    caller.remember(a_summary())
    full = FullSchedulerLog.model_validate_json((await caller.get(POD + "?detail=full&node=node1")).content)
    assert full.devices is None
    assert "OpenSearch does not answer" in full.devices_note


async def test_a_pod_in_memory_is_answered_while_the_index_is_down() -> None:
    caller = Caller(refuse)
    caller.remember(a_summary())
    assert (await caller.get(POD)).status_code == 200


async def test_a_pod_that_the_topic_brings_while_the_index_stands_still_is_answered() -> None:
    requested = asyncio.Event()

    async def hang(_: httpx.Request) -> httpx.Response:
        requested.set()
        return await asyncio.Future()

    caller = Caller(hang)
    caller.remember()
    answering = asyncio.create_task(caller.get(POD))
    await requested.wait()
    caller.remember(a_summary())
    assert (await answering).status_code == 200


async def test_a_pod_that_is_not_in_memory_is_503_and_not_404_while_the_index_is_down() -> None:
    answer = await Caller(refuse).get(POD)
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "Try again" in answer.json()["next"]


async def test_the_answer_for_an_unknown_pod_lists_what_to_check() -> None:
    answer = await Caller().get(POD)
    assert answer.status_code == 404
    for hint in ("kubectl -n llm get pod deepseek-a", "schedulerName", "limits", "/readyz", "pipeline worker"):
        assert hint in answer.json()["next"]


async def test_an_older_pod_comes_from_the_index() -> None:
    answer = await Caller(hold(a_summary())).get(POD)
    assert SchedulerLog.model_validate_json(answer.content).filter.nodes[0].name == "node1"


async def test_while_the_brokers_are_away_the_newer_of_memory_and_index_is_answered() -> None:
    older, newer = a_summary(["old"], version=1), a_summary(["new"], version=2)
    for memory, index in ((older, newer), (newer, older)):
        caller = Caller(hold(index))
        caller.remember(memory, following=False)
        assert (await caller.get(POD)).json()["filter"]["nodes"][0]["name"] == "new"


async def test_while_the_brokers_and_the_index_are_away_memory_answers() -> None:
    caller = Caller(refuse)
    caller.remember(a_summary(), following=False)
    assert (await caller.get(POD)).status_code == 200


NAMES = [
    "%2e%2e",
    "..",
    ".",
    "a%2fb",
    "a%2Fpods%2Fdeepseek-a",
    "%00",
    "a%00",
    "a" * 254,
    "A",
    "a_b",
    "%61",
    "ä",
    "-a",
    "a%0a",
]


@pytest.mark.parametrize(("part", "name"), list(product(["namespace", "pod"], NAMES)))
async def test_a_strange_name_never_gets_another_pods_answer(caller: Caller, part: str, name: str) -> None:
    namespace, pod = (name, "deepseek-a") if part == "namespace" else ("llm", name)
    answer = await caller.get(f"/api/v1/namespaces/{namespace}/pods/{pod}/schedulerlog")
    assert answer.status_code in (400, 404), answer.text
    Error.model_validate_json(answer.content)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/llm%2fpods%2fdeepseek-a/schedulerlog",
        "/api/v1/namespaces/x/pods/..%2f..%2fllm%2fpods%2fdeepseek-a/schedulerlog",
        "/api/v1/namespaces/llm/pods/deepseek-a%2fschedulerlog",
        "/api/v1//namespaces/llm/pods/deepseek-a/schedulerlog",
        "/api/v1/namespaces/llm/pods/deepseek-a/schedulerlog/",
        "/API/v1/namespaces/llm/pods/deepseek-a/schedulerlog",
        "/api/v1/namespaces/llm/pods//schedulerlog",
    ],
)
async def test_a_path_that_only_resembles_that_of_a_pod_is_refused(caller: Caller, path: str) -> None:
    answer = await caller.get(path)
    assert answer.status_code in (400, 404)
    Error.model_validate_json(answer.content)


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        (POD + "?nodes=node1", "'nodes' is unknown here; known are: node, status, limit, continue, detail"),
        (POD + "?limit=0&nodes=node1", "'nodes'"),
        (POD + "?status=refused", "status"),
        (POD + "?detail=yes", "detail"),
        (POD + "?limit=1&limit=2", "given 2 times"),
        (POD + "?continue=nonsense", "continue"),
        (POD + "/history?node=a", "'node' is unknown"),
        (POD + "/history?continue=x", "continue"),
        ("/api/v1/schedulerlogs?namespce=llm", "'namespce'"),
        ("/api/v1/schedulerlogs?since=yesterday", "since"),
        ("/api/v1/schedulerlogs?node=a&node=b", "given 2 times"),
        ("/api/v1/schedulerlogs?limit=1000", "limit"),
        ("/api/v1/schedulerlogs?since=1h&until=2h", "the range is empty"),
        ("/healthz?verbose=1", "'verbose'"),
    ],
)
async def test_a_wrong_parameter_is_named(caller: Caller, path: str, cause: str) -> None:
    answer = await caller.get(path)
    assert answer.status_code == 400
    assert cause in Error.model_validate_json(answer.content).error


async def test_a_token_of_one_request_is_refused_by_another(caller: Caller) -> None:
    token = (await caller.get(POD + "?limit=1")).headers["x-continue"]
    for path in (f"{POD}?status=failed&continue={token}", f"{POD}/history?continue={token}"):
        assert (await caller.get(path)).status_code == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_other_methods_are_refused_in_json(caller: Caller, method: str) -> None:
    answer = await caller.client.request(method, POD)
    assert answer.status_code == 405
    assert method in Error.model_validate_json(answer.content).error
    assert "GET" in answer.headers["allow"]


async def test_a_defect_shows_no_traceback() -> None:
    caller = Caller(lambda _: httpx.Response(200, json={"unexpected": True}))
    answer = await caller.get(POD)
    assert answer.status_code == 500
    Error.model_validate_json(answer.content)
    assert "Traceback" not in answer.text
    assert "hits" not in answer.text


async def test_an_unreadable_document_is_named() -> None:
    def answer_unreadable(_: httpx.Request) -> httpx.Response:
        hit = {"_index": "i", "_id": "abc", "_source": {"summary": {"version": -1}}, "fields": {"pod": ["deepseek-a"]}}
        return httpx.Response(200, json={"hits": {"hits": [hit]}})

    answer = await Caller(answer_unreadable).get(POD)
    assert answer.status_code == 500
    assert "document abc" in answer.json()["error"]


async def test_an_index_that_answers_garbage_is_down() -> None:
    assert (await Caller(lambda _: httpx.Response(200, content=b"<html>")).get(POD)).status_code == 503


async def test_a_connection_closed_by_a_restart_is_tried_once_more() -> None:
    calls = 0

    def fail_once(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise httpx.RemoteProtocolError("Server disconnected", request=request)
        return hold(a_summary())(request)

    assert (await Caller(fail_once).get(POD)).status_code == 200


async def test_ready_when_the_topic_was_replayed_also_while_the_index_is_down() -> None:
    caller = Caller(refuse)
    answer = await caller.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    caller.remember(a_summary())
    answer = await caller.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["opensearch"]["ready"]) == (200, False)
    assert "refused" in answer.json()["parts"]["opensearch"]["why_not"]


async def test_ready_by_the_index_alone_while_the_brokers_are_away_but_not_during_the_replay() -> None:
    caller = Caller()
    assert (await caller.get("/readyz")).status_code == 503
    caller.app.state.topic.trouble = caller.app.state.pods_topic.trouble = "Kafka does not answer"
    answer = await caller.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["parts"]["attempts_topic"]["why_not"] == "Kafka does not answer"


async def test_not_ready_before_the_waiting_pods_are_replayed() -> None:
    caller = Caller()
    caller.remember(a_summary())
    caller.app.state.pods_topic.replayed = False
    answer = await caller.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["attempts_topic"]["ready"]) == (503, True)
    assert answer.json()["parts"]["pods_topic"]["why_not"] == "not replayed to its end yet"
    caller.app.state.pods_topic.trouble = "the topic of pods is missing"
    answer = await caller.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["pods_topic"]["ready"]) == (200, False)


async def test_metrics_count_requests_by_route_and_never_by_pod(caller: Caller) -> None:
    for path in (POD, POD, "/nothing", POD + "?x=1"):
        await caller.get(path)
    text = (await caller.get("/metrics")).text
    route = "/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog"
    assert f'schedulerlog_api_requests_total{{route="{route}",status="200"}} 2.0' in text
    assert f'schedulerlog_api_requests_total{{route="{route}",status="400"}} 1.0' in text
    assert 'schedulerlog_api_requests_total{route="unmatched",status="404"} 1.0' in text
    assert 'schedulerlog_api_lookups_total{outcome="hit"} 2.0' in text
    assert "schedulerlog_api_cached_pods 1.0" in text
    assert "deepseek" not in text


async def test_the_openapi_document_names_every_parameter_answer_and_error(caller: Caller) -> None:
    document = (await caller.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    operation = document["paths"][POD.replace("llm", "{namespace}").replace("deepseek-a", "{name}")]["get"]
    assert [parameter["name"] for parameter in operation["parameters"]] == [
        "namespace",
        "name",
        "node",
        "status",
        "limit",
        "continue",
        "detail",
        "watch",
        "resourceVersion",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "timeoutSeconds",
    ]
    assert all(parameter["description"] for parameter in operation["parameters"])
    assert set(operation["responses"]) == {"200", "400", "404", "410", "503", "default"}
    answers = operation["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]
    assert [answer["$ref"].rpartition("/")[2] for answer in answers] == ["SchedulerLog", "FullSchedulerLog"]
    assert {"ETag", "Link", "X-Continue", "X-Total-Count"} == set(operation["responses"]["200"]["headers"])
    assert "ValidationError" not in str(document)
    schema = document | {"$ref": "#/components/schemas/SchedulerLog"}
    Draft202012Validator(schema).validate((await caller.get(POD)).json())


async def test_every_error_is_documented_as_json_also_where_the_answer_is_a_text(caller: Caller) -> None:
    document = (await caller.get("/openapi.json")).json()
    answers = [
        responses
        for path in document["paths"].values()
        for responses in [operation["responses"] for operation in path.values()]
    ]
    errors = [response for responses in answers for status, response in responses.items() if status != "200"]
    assert len(errors) > len(answers) > 30
    schema = {"$ref": "#/components/schemas/Error"}
    assert all(error["content"]["application/problem+json"]["schema"] == schema for error in errors)
    of_text = {next(iter(answer["200"]["content"])) for answer in answers} - {"application/json"}
    assert of_text == {"application/yaml", "text/plain"}


async def test_the_documentation_page_loads_nothing_from_elsewhere(caller: Caller) -> None:
    page = await caller.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "/api/v1/schedulerlogs" in page.text
    for answered in ("SchedulerLog", "Findings", "NodeOccupancy", "Error"):
        assert f'<h3 id="{answered}">' in page.text
        assert f'<a href="#{answered}">' in page.text
    for loading in ("<script", "src=", "http://", "https://", "@import", "<link"):
        assert loading not in page.text


WORDS = "/ // .. %2f ? & = api v1 namespaces llm pods deepseek-a schedulerlog history schedulerlogs node status limit"
PARAMETERS = "continue detail full since from at occupancy observations q 1 -1 %00 %ff é +"
PIECES = st.sampled_from(WORDS.split() + PARAMETERS.split())
ANY_TIMES = Caller()
ANY_TIMES.remember(a_summary())


@settings(max_examples=count_examples(30))
@given(
    st.lists(PIECES, max_size=14),
    st.sampled_from(["GET", "HEAD", "POST", "BREW"]),
    st.sampled_from([POD, "/api/v1/schedulerlogs", "/api/v1/findings", "/api/v1/nodes/", ""]),
)
def test_any_request_gets_json_and_never_a_server_error(pieces: list[str], method: str, start: str) -> None:
    async def ask() -> httpx.Response:
        return await ANY_TIMES.client.request(method, start + "".join(pieces) or "/")

    try:
        answer = asyncio.run(ask())
    except httpx.InvalidURL:
        return
    assert answer.status_code in (200, 400, 404, 405)
    if answer.status_code != 200 and method != "HEAD":
        assert Error.model_validate_json(answer.content).error


async def test_many_readers_and_a_writer_at_once_always_see_a_whole_answer(caller: Caller) -> None:
    async def read() -> Any:
        return [(await caller.get(POD)).json() for _ in range(50)]

    async def write() -> None:
        for version in range(2, 60):
            caller.remember(
                a_summary([f"node{version}"], version=version, pod=PodRef(namespace="llm", name="deepseek-a"))
            )
            await asyncio.sleep(0)

    *readings, _ = await asyncio.gather(*(read() for _ in range(4)), write())
    assert all(answer["filter"]["nodes"] for answers in readings for answer in answers)

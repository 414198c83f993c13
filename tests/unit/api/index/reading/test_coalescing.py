"""H9, M14: callers who ask the same at the same moment cost OpenSearch one request, and none gets an older answer."""

import asyncio
import gc
from typing import Any

import httpx
import orjson
import pytest

from api.http.caller_wait import CallerWait
from api.index.attempts.attempt_queries import PodName
from api.index.attempts.attempt_reader import read_latest_attempt
from api.index.reading import client
from api.index.reading.client import IndexDownError, IndexTimeoutError, OpenSearch
from api.index.reading.coalescing import MAX_ITEMS, Coalescing
from schemas.codec.records import encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import PodRef
from tests.support.builders.events import a_summary
from tests.support.harness.api_app import index_of

QUERY: dict[str, Any] = {"query": {"match_all": {}}}


class Network:
    """Answers when it is let, with how many requests there were before; attempts of the pods that are asked for."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.is_open = asyncio.Event()
        self.status = 200

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(orjson.loads(request.content))
        number = len(self.bodies)
        await self.is_open.wait()
        hits = [self._hit(pod) for pod in reversed(parse_pods(self.bodies[number - 1])) if pod != "none"]
        return httpx.Response(self.status, json={"number": number, "hits": {"hits": hits}})

    @staticmethod
    def _hit(pod: str) -> dict[str, Any]:
        summary = a_summary(pod=PodRef(namespace="llm", name=pod, uid=f"uid-{pod}"))
        source = orjson.loads(encode_value(build_attempt_document(summary, "")))
        return {"_index": "i", "_id": summary.attempt_id, "_source": source, "fields": {"pod": [pod]}}


def parse_pods(body: dict[str, Any]) -> list[str]:
    clauses = body["query"].get("bool", {}).get("filter", [])
    return next((clause["terms"]["pod"] for clause in clauses if "terms" in clause), [])


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def index(network: Network, monkeypatch: pytest.MonkeyPatch) -> OpenSearch:
    """One request at a time: all that come while it is under way wait for their turn."""
    monkeypatch.setattr(client, "_AT_A_TIME", 1)
    return OpenSearch(index_of(network), lambda *_: None, 10)


async def let_tasks_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def start_searches(index: OpenSearch, *bodies: dict[str, Any]) -> list["asyncio.Task[dict[str, Any]]"]:
    return [asyncio.create_task(index.search("a", body)) for body in bodies]


async def test_equal_questions_that_wait_are_one_request(index: OpenSearch, network: Network) -> None:
    first = start_searches(index, QUERY)
    await let_tasks_run()
    others = start_searches(index, QUERY, QUERY, {"query": {"match_none": {}}}, QUERY)
    await let_tasks_run()
    assert len(network.bodies) == 1
    network.is_open.set()
    assert [answer["number"] for answer in await asyncio.gather(*first, *others)] == [1, 2, 2, 3, 2]


async def test_who_asks_after_a_request_was_sent_gets_an_answer_of_their_own(
    index: OpenSearch, network: Network
) -> None:
    (first,) = start_searches(index, QUERY)
    await let_tasks_run()
    (second,) = start_searches(index, QUERY)
    network.is_open.set()
    assert [(await task)["number"] for task in (first, second)] == [1, 2]


async def test_who_leaves_takes_the_answer_from_none_and_the_last_one_ends_the_request(
    index: OpenSearch, network: Network
) -> None:
    first, second = start_searches(index, QUERY, QUERY)
    await let_tasks_run()
    first.cancel()
    await let_tasks_run()
    assert not second.done()
    network.is_open.set()
    assert (await second)["number"] == 1
    network.is_open.clear()
    (third,) = start_searches(index, QUERY)
    await let_tasks_run()
    third.cancel()
    (fourth,) = start_searches(index, QUERY)
    await let_tasks_run()
    network.is_open.set()
    assert (await fourth)["number"] == 3, "its turn came as soon as the third caller left"


async def test_each_waits_no_longer_than_their_own_time(index: OpenSearch, network: Network) -> None:
    with CallerWait(0.05):
        hurried = asyncio.create_task(index.search("a", QUERY))
    patient = asyncio.create_task(index.search("a", QUERY))
    with pytest.raises(IndexTimeoutError):
        await hurried
    network.is_open.set()
    assert (await patient)["number"] == 1


async def test_an_error_reaches_all_who_asked(index: OpenSearch, network: Network) -> None:
    network.status = 503
    network.is_open.set()
    answers = await asyncio.gather(*start_searches(index, QUERY, QUERY), return_exceptions=True)
    assert [type(answer) for answer in answers] == [IndexDownError] * 2


async def read_latest_pod(index: OpenSearch, namespace: str, name: str) -> str | None:
    """Return the name of the pod whose attempt was found."""
    attempt = await read_latest_attempt(index, PodName("default", namespace, name))
    return attempt[0].pod.name if attempt else None


async def test_pods_of_a_namespace_are_asked_for_together_and_each_caller_gets_their_own(
    index: OpenSearch, network: Network
) -> None:
    (before,) = start_searches(index, QUERY)
    await let_tasks_run()
    names = ["a", "b", "none", "a", *(f"pod-{number}" for number in range(MAX_ITEMS))]
    callers = [asyncio.create_task(read_latest_pod(index, "llm", name)) for name in names]
    others = [asyncio.create_task(read_latest_pod(index, "others", "a"))]
    network.is_open.set()
    answers = await asyncio.gather(*callers)
    assert answers == [None if name == "none" else name for name in names]
    await asyncio.gather(before, *others)
    asked_for = [parse_pods(body) for body in network.bodies[1:]]
    assert asked_for == [names[:3] + names[4 : MAX_ITEMS + 1], names[MAX_ITEMS + 1 :], ["a"]]


async def test_nothing_is_remembered(network: Network) -> None:
    network.is_open.set()
    index = OpenSearch(index_of(network), lambda *_: None, 10)
    assert [(await index.search("a", QUERY))["number"] for _ in range(3)] == [1, 2, 3]


async def test_a_request_that_fails_when_its_last_caller_has_left_is_no_error_of_the_program() -> None:
    unexpected: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unexpected.append(context))

    async def fail_at_its_end(_: Any) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Coalescing().answer("key", "", fail_at_its_end)
    await asyncio.sleep(0)
    # asyncio reports it when the task is deleted.
    gc.collect()
    assert unexpected == []

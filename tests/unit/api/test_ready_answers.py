"""A pod's answer is kept as it was sent: for who may read it, and while the attempt is the latest one."""

from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request

from api import ready_answers
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import ACCESS_REVIEW, Grant
from tests.support.harness.api_app import POD, Caller, down
from tests.support.harness.guarded_api import READS_LLM, Guarded


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller(down)
    caller.remember(a_summary(ended_at=STARTED))
    yield caller
    await caller.client.aclose()


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the answers that the handler made."""
    paths, keep = [], ready_answers.ReadyAnswers.keep

    def noting(self: ready_answers.ReadyAnswers, request: Request, *rest: object) -> None:
        paths.append(request.url.path)
        keep(self, request, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ready_answers.ReadyAnswers, "keep", noting)
    return paths


async def test_the_second_answer_is_the_first_one_and_is_counted_as_it(caller: Caller, rendered: list[str]) -> None:
    first, second, third = [await caller.get(POD) for _ in range(3)]
    assert rendered == [POD]
    assert first.content == second.content == third.content
    assert first.headers == second.headers == third.headers
    metrics = (await caller.get("/metrics")).text
    route = 'route="/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog"'
    assert f'schedulerlog_api_requests_total{{{route},status="200"}} 3.0' in metrics
    assert 'schedulerlog_api_lookups_total{outcome="hit"} 3.0' in metrics


async def test_what_becomes_known_later_is_answered_at_once(caller: Caller, rendered: list[str]) -> None:
    before = [await caller.get(POD) for _ in range(2)]
    caller.remember(a_summary(["node7"], version=2, ended_at=STARTED))
    after = [await caller.get(POD) for _ in range(2)]
    assert [[node["name"] for node in answer.json()["filter"]["nodes"]] for answer in after] == [["node7"]] * 2
    assert before[1].headers["etag"] != after[1].headers["etag"]
    assert rendered == [POD] * 2


async def test_parameters_tags_and_other_methods_are_answered_by_the_handler(caller: Caller) -> None:
    tag = (await caller.get(POD)).headers["etag"]
    assert len((await caller.get(POD + "?node=node2")).json()["filter"]["nodes"]) == 1
    assert (await caller.get(POD + "?nonsense=1")).status_code == 400
    assert (await caller.get(POD, **{"If-None-Match": tag})).status_code == 304
    assert (await caller.client.post(POD)).status_code == 405
    head = await caller.client.head(POD)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


async def test_while_kafka_is_away_memory_is_no_longer_current(caller: Caller, rendered: list[str]) -> None:
    await caller.get(POD)
    caller.remember(following=False)
    # The index is asked too; it is down, so that memory is the better answer.
    assert (await caller.get(POD)).status_code == 200
    assert rendered == [POD] * 2


async def test_each_caller_needs_the_right_to_what_another_one_was_answered() -> None:
    api = Guarded()
    api.begin()
    alice = api.reviews.caller("alice", READS_LLM)
    bob = api.reviews.caller("bob", Grant("bob", "get", "pods", "other"))
    assert [await api.status(POD, header) for header in (alice, alice, bob, {})] == [200, 200, 403, 401]
    api.reviews.grants.discard(READS_LLM)
    api.clock.now += 11
    # Allowed is remembered for ten seconds at most.
    assert await api.status(POD, alice) == 403
    asked = {spec["resourceAttributes"]["namespace"] for spec in api.reviews.asked(ACCESS_REVIEW)}
    assert asked == {"llm"}
    answer = await api.client.get(POD, headers=api.reviews.caller("carol", Grant("carol", "get", "pods", "llm")))
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("private, no-cache", "Authorization")

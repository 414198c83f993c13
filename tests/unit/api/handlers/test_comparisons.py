"""Scores and comparisons over HTTP: refused questions, and what is not there."""

from datetime import timedelta
from itertools import permutations

import pytest

from page.views.answered_nodes import group_answered_nodes
from schemas.answers.attempts import Error
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import Grant
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import answer_search, read_attempt
from tests.support.harness.guarded_api import READS_LLM, Guarded

POD = "/api/v1/namespaces/llm/pods/deepseek-5996b8569d-kgwgx"
ATTEMPT = "/api/v1/attempts/" + read_attempt().attempt_id


@pytest.mark.parametrize(
    ("path", "status", "cause"),
    [
        (POD + "/comparison", 400, "parameter nodes"),
        (POD + "/comparison?nodes=node1", 400, "two different ones"),
        (POD + "/comparison?nodes=node1,node1", 400, "two different ones"),
        (POD + "/comparison?nodes=node1,node2,node3", 400, "3 names"),
        (POD + "/comparison?nodes=node1,node9", 404, "did not judge node node9"),
        (POD + "/scores?node=node1", 400, "'node' is unknown"),
        (ATTEMPT + "/comparison", 400, "parameter with"),
        (ATTEMPT + "/comparison?with=a/b", 400, "parameter with"),
        (ATTEMPT + "/comparison?with=none", 404, "no attempt none"),
        ("/api/v1/namespaces/llm/pods/other/scores", 404, "no scheduling attempt"),
        (POD + "/groups?status=failed", 400, "'status' is unknown"),
        ("/api/v1/namespaces/llm/pods/other/groups", 404, "no scheduling attempt"),
    ],
)
async def test_a_wrong_question_names_its_mistake(path: str, status: int, cause: str) -> None:
    caller = Caller()
    caller.remember(read_attempt())
    answer = await caller.get(path)
    assert answer.status_code == status, answer.text
    assert cause in Error.model_validate_json(answer.content).error


async def test_nodes_are_grouped_as_the_terminal_groups_them() -> None:
    caller = Caller()
    caller.remember(read_attempt())
    body = (await caller.get(POD + "/groups")).json()
    nodes = (await caller.get(POD + "/schedulerlog")).json()["filter"]["nodes"]
    groups = group_answered_nodes(nodes, body["chosen"])
    assert [(group["verdict"], group["reason"], group["nodes"], group["is_refused"]) for group in body["groups"]] == [
        (group.verdict, group.reason, group.nodes, group.is_refused) for group in groups
    ]
    assert [group["counts"] for group in body["groups"]] == [
        [count._asdict() for count in group.counts] for group in groups
    ]


async def test_the_groups_are_for_who_may_read_the_pod() -> None:
    api = Guarded()
    api.begin()
    path = "/api/v1/namespaces/llm/pods/deepseek-a/groups"
    assert await api.get_status(path, api.reviews.build_header("alice", READS_LLM)) == 200
    assert await api.get_status(path, api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))) == 403


async def test_nodes_are_compared_in_the_order_of_the_question() -> None:
    caller = Caller()
    caller.remember(read_attempt())
    body = (await caller.get(POD + "/comparison?nodes=node5&nodes=node3")).json()
    assert [node["node"] for node in body["nodes"]] == ["node5", "node3"]
    assert body["difference"] == {"score": 0.2, "slots": 0.1, "cores": 0, "memory": 0.1}


@pytest.mark.parametrize("answer", ["groups", "scores", "comparison?nodes=node5&nodes=node3"])
async def test_an_attempt_that_is_given_is_the_one_that_is_shown(answer: str) -> None:
    """The golden attempt, a later one of the same pod, and one of another pod."""
    before = read_attempt()
    started_at = before.started_at + timedelta(minutes=1)
    later = before.model_copy(update={"attempt_id": "a7" * 16, "started_at": started_at, "version": before.version + 1})
    pod = before.pod.model_copy(update={"name": "other", "uid": "u-other"})
    others = later.model_copy(update={"attempt_id": "b8" * 16, "pod": pod})
    caller = Caller(answer_search)
    caller.remember(before, later, others)
    path = f"{POD}/{answer}{'&' if '?' in answer else '?'}attempt="
    assert (await caller.get(POD + "/" + answer)).json()["attempt_id"] == later.attempt_id
    for summary in (before, later):
        assert (await caller.get(path + summary.attempt_id)).json()["attempt_id"] == summary.attempt_id
    assert (await caller.get(path + others.attempt_id)).status_code == 404


async def test_attempts_of_two_pods_are_compared_with_the_earlier_one_first() -> None:
    """The golden attempt, and one of another pod a minute later, which node1 would have taken."""
    before = read_attempt()
    verdict = before.verdict.copy()
    verdict[0] = before.verdicts.index("fits")
    after = before.model_copy(
        update={
            "attempt_id": "a7" * 16,
            "pod": before.pod.model_copy(update={"name": "other", "uid": "u-other"}),
            "started_at": before.started_at + timedelta(minutes=1),
            "verdict": verdict,
            "node_policy": "spread",
        }
    )
    caller = Caller()
    caller.remember(before, after)
    # In whatever order they are asked for.
    answers = [
        (await caller.get(f"/api/v1/attempts/{attempt}/comparison?with={other}")).json()
        for attempt, other in permutations((before.attempt_id, after.attempt_id))
    ]
    assert answers[0] == answers[1]
    assert (answers[0]["before"], answers[0]["after"]) == (ATTEMPT, "/api/v1/attempts/" + "a7" * 16)
    assert answers[0]["fields"] == {"node_policy": [before.node_policy, "spread"]}
    (node,) = answers[0]["nodes"]
    assert (node["before"]["verdict"], node["after"]["verdict"], answers[0]["unchanged_nodes"]) == (
        "refused", "fits", 4,
    )  # fmt: skip


async def test_who_may_not_read_one_of_the_pods_sees_no_comparison() -> None:
    api = Guarded()
    api.begin()
    mine = a_summary(ended_at=STARTED)
    others = mine.model_copy(
        update={"attempt_id": "a7" * 16, "pod": mine.pod.model_copy(update={"namespace": "other", "uid": "u-other"})}
    )
    api.remember(others)
    alice = api.reviews.build_header("alice", READS_LLM)
    both = api.reviews.build_header("both", Grant("both", "get", "pods", "llm"), Grant("both", "get", "pods", "other"))
    path = f"/api/v1/attempts/{mine.attempt_id}/comparison?with={others.attempt_id}"
    assert [await api.get_status(path, header) for header in (alice, both)] == [403, 200]
    # The same words as for an attempt that there is not.
    refused = [
        (await api.client.get(path.replace(others.attempt_id, name), headers=alice)).json()["error"]
        for name in (others.attempt_id, "b8" * 16)
    ]
    assert refused[0].replace(others.attempt_id, "X") == refused[1].replace("b8" * 16, "X")

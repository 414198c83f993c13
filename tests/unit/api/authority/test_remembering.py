"""Answers of the API server: for how long they are remembered, and what happens while there are none."""

import pytest

from runtime.kubernetes.errors import KubeApiError
from tests.support.fakes.reviews import TOKEN_REVIEW
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import OTHER, READS_LLM, Guarded


async def test_what_is_remembered_of_a_right_ends_after_ten_seconds_and_of_a_refusal_after_two(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    assert [await api.get_status(POD, header) for _ in range(2)] == [200, 200]
    assert len(api.reviews.specs) == 2
    api.reviews.grants.clear()
    api.clock.now += 9.9
    assert await api.get_status(POD, header) == 200
    api.clock.now += 0.1
    assert await api.get_status(POD, header) == 403
    api.reviews.grants.add(READS_LLM)
    api.clock.now += 1.9
    assert await api.get_status(POD, header) == 403
    api.clock.now += 0.1
    assert await api.get_status(POD, header) == 200


async def test_without_the_api_server_only_what_is_remembered_is_answered(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(POD, header) == 200
    api.reviews.answer = KubeApiError(0, "it can't be reached")
    assert await api.get_status(POD, header) == 200
    api.clock.now += 10
    refused = await api.client.get(POD, headers=header)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    api.reviews.answer = None
    # A failure is not remembered.
    assert await api.get_status(POD, header) == 200


@pytest.mark.parametrize(
    "answer",
    [
        *(KubeApiError(status, "refused") for status in (401, 403, 429, 500)),
        {},
        [],
        "html",
        {"status": None},
        {"status": {}},
        {"status": "Failure", "kind": "Status"},
        {"status": {"allowed": "true", "authenticated": "true", "user": {}}},
    ],
)
async def test_an_answer_that_is_not_a_review_is_503(api: Guarded, answer: object) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    api.reviews.answer = answer
    assert await api.get_status(POD, header) == 503
    api.reviews.answer = None
    assert await api.get_status(OTHER, header) == 403
    api.reviews.answer = answer
    assert await api.get_status(POD, header) == 503


async def test_denied_wins_over_allowed(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(OTHER, header) == 403
    api.reviews.answer = {"status": {"allowed": True, "denied": True}}
    assert await api.get_status(POD, header) == 403


async def test_two_tokens_never_share_what_is_remembered(api: Guarded) -> None:
    header = api.reviews.build_header("alice", READS_LLM)
    assert await api.get_status(POD, header) == 200
    assert await api.get_status(POD, {"Authorization": header["Authorization"] + "e"}) == 401
    assert len(api.reviews.list_specs(TOKEN_REVIEW)) == 2

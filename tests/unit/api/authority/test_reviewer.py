"""Reviews in flight: one for a key, few at once, none for longer than it may take."""

import asyncio

import pytest

from api.authority.credentials import Caller
from api.authority.reviewer import Reviewer, ReviewerError
from api.authority.rights import get_node, get_pod
from runtime.kubernetes.errors import KubeApiError
from tests.support.fakes.reviews import FakeReviews, Grant

ALICE = Caller("alice")


@pytest.fixture
def reviews() -> FakeReviews:
    reviews = FakeReviews()
    reviews.build_header("alice", Grant("alice", "get", "pods", "llm"))
    return reviews


@pytest.fixture
def reviewer(reviews: FakeReviews) -> Reviewer:
    # On a busy machine a test may take longer than an answer is believed and a review is waited for.
    return Reviewer(reviews, "schedulerlog", clock=lambda: 0.0, review_seconds=3600)


async def test_two_hundred_callers_wait_for_one_review(reviews: FakeReviews, reviewer: Reviewer) -> None:
    reviews.answering.clear()
    waiting = [asyncio.create_task(reviewer.may(ALICE, get_pod("llm", "a"))) for _ in range(200)]
    await asyncio.sleep(0)
    # One of them hangs up, and takes the answer from nobody.
    waiting[0].cancel()
    await asyncio.sleep(0)
    reviews.answering.set()
    assert await asyncio.gather(*waiting[1:]) == [True] * 199
    assert len(reviews.specs) == 1


async def test_a_failed_review_fails_who_waits_for_it_and_is_not_remembered(
    reviews: FakeReviews, reviewer: Reviewer
) -> None:
    reviews.answer = KubeApiError(500, "etcd is away")
    checks = [reviewer.may(ALICE, get_pod("llm", "a")) for _ in range(3)]
    assert [type(error) for error in await asyncio.gather(*checks, return_exceptions=True)] == [ReviewerError] * 3
    reviews.answer = None
    assert await reviewer.may(ALICE, get_pod("llm", "a"))


async def test_a_review_that_takes_too_long_is_given_up(reviews: FakeReviews) -> None:
    reviewer = Reviewer(reviews, "schedulerlog", review_seconds=0.01)
    reviews.answering.clear()
    with pytest.raises(ReviewerError, match="no answer within"):
        await reviewer.may(ALICE, get_pod("llm", "a"))


async def test_many_unknown_tokens_do_not_delay_a_known_caller(reviews: FakeReviews, reviewer: Reviewer) -> None:
    assert await reviewer.identify("token-of-alice") == Caller("alice", "", ("system:authenticated",))
    reviews.answering.clear()
    guesses = [asyncio.create_task(reviewer.identify(f"guess-{number}")) for number in range(10_000)]
    # One turn of the loop: each of them has asked, or was refused.
    await asyncio.sleep(0)
    done, waiting = [[guess for guess in guesses if guess.done() is is_done] for is_done in (True, False)]
    assert (len(done), len(waiting)) == (10_000 - 64, 64)
    assert {type(guess.exception()) for guess in done} == {ReviewerError}
    assert await reviewer.identify("token-of-alice")
    reviews.answering.set()
    assert await asyncio.gather(*waiting) == [None] * 64


async def test_a_right_is_remembered_by_all_that_it_names(reviews: FakeReviews, reviewer: Reviewer) -> None:
    allowed = [
        await reviewer.may(ALICE, right) for right in (get_pod("llm", "a"), get_pod("other", "a"), get_node("a"))
    ]
    assert allowed == [True, False, False]
    assert not await reviewer.may(Caller("bob"), get_pod("llm", "a"))
    assert len(reviews.specs) == 4

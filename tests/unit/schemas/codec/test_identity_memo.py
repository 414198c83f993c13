"""What is made once of the same objects, and what is kept of it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from schemas.codec.identity_memo import ByteBoundedLru, IdentityMemo, of_nodes
from schemas.events import AttemptSummarized
from tests.support.builders.events import a_summary


def test_of_the_same_objects_it_is_made_once() -> None:
    made: IdentityMemo[int] = IdentityMemo(10_000)
    one, other = [1], [1]
    assert made.of([one, other], 1, lambda: 1) == 1
    assert made.of([one, other], 1, lambda: 2) == 1


def test_objects_that_are_only_equal_or_in_another_order_are_others() -> None:
    made: IdentityMemo[str] = IdentityMemo(10_000)
    one, other = [1], [1]
    made.of([one, other], 1, lambda: "before")
    for objects in ([other, one], [one], [one, [1]]):
        assert made.of(objects, 1, lambda: "now") == "now"


def test_what_was_used_last_is_kept_within_its_bytes() -> None:
    recent: ByteBoundedLru[str, int] = ByteBoundedLru(10_000)
    recent.remember("a", 1, 4_000)
    recent.remember("b", 2, 4_000)
    assert recent.find("a") == 1
    recent.remember("c", 3, 4_000)
    assert [recent.find(key) for key in "abc"] == [1, None, 3]


def test_what_is_remembered_again_counts_once() -> None:
    recent: ByteBoundedLru[str, int] = ByteBoundedLru(10_000)
    for _ in range(9):
        recent.remember("a", 1, 4_000)
    recent.remember("b", 2, 4_000)
    assert (recent.find("a"), recent.find("b")) == (1, 2)


def test_what_is_larger_than_all_of_it_is_not_kept() -> None:
    recent: ByteBoundedLru[str, int] = ByteBoundedLru(10_000)
    recent.remember("a", 1, 10_001)
    assert recent.find("a") is None


def test_what_takes_no_bytes_is_not_kept_for_ever() -> None:
    recent: ByteBoundedLru[int, int] = ByteBoundedLru(10_000)
    for number in range(1_000):
        recent.remember(number, number, 0)
    assert recent.find(999) == 999
    assert sum(recent.find(number) is not None for number in range(1_000)) < 100


def test_threads_may_share_it() -> None:
    recent: ByteBoundedLru[int, int] = ByteBoundedLru(20_000)

    def use(seed: int) -> int:
        wrong = 0
        for number in range(20_000):
            key = (number * seed) % 50
            recent.remember(key, key, 100)
            wrong += recent.find((key + 1) % 50) not in (None, (key + 1) % 50)
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(use, (1, 7, 11, 13))) == 0


def test_an_object_that_is_gone_is_never_taken_for_a_new_one_in_its_place() -> None:
    """An id is given again when its object goes; what was made of it must keep it from going."""
    made: IdentityMemo[int] = IdentityMemo(10**9)
    for number in range(2_000):
        assert made.of([np.array([number])], 1, lambda number=number: number) == number  # type: ignore[misc]


def test_summaries_of_the_same_columns_share_what_follows_from_them() -> None:
    calls = []

    @of_nodes
    def names(summary: AttemptSummarized) -> list[str]:
        calls.append(summary.attempt_id)
        return summary.nodes

    summary = a_summary()
    assert names(summary) is names(summary.model_copy(update={"attempt_id": "another"}))
    changed = summary.model_copy(update={"verdict": summary.verdict.copy()})
    names(changed)
    assert calls == [summary.attempt_id, summary.attempt_id]

"""Latest attempt of a pod, whatever the order in which the records come."""

from datetime import timedelta
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.memory.latest_attempts import LatestAttempts
from schemas.codec.chunking import split
from schemas.codec.records import encode
from schemas.events import AttemptRepeated, AttemptSummarized, PodRef
from tests.support.builders.events import STARTED, a_repetition, a_summary

NOW = STARTED.timestamp() + 3600


def a_memory(max_pods: int = 1000, max_bytes: int = 10**9) -> LatestAttempts:
    return LatestAttempts(max_pods, max_bytes)


def add_all(memory: LatestAttempts, *summaries: AttemptSummarized, now: float = NOW) -> None:
    for part in (part for summary in summaries for part in split(summary)):
        memory.add(part, encode(part).value, now)


def an_attempt(second: int = 0, version: int = 1, pod: str = "deepseek-a") -> AttemptSummarized:
    started = STARTED + timedelta(seconds=second)
    name = f"{second:08x}" * 4
    return a_summary(attempt_id=name, started_at=started, version=version, pod=PodRef(namespace="llm", name=pod))


def get_cached_id(memory: LatestAttempts, pod: str = "deepseek-a") -> tuple[str, int] | None:
    cached = memory.get("default", "llm", pod, NOW)
    return (cached.attempt_id, cached.version) if cached else None


@given(st.permutations([an_attempt(0, 1), an_attempt(0, 2), an_attempt(7, 1), an_attempt(7, 3), an_attempt(3, 9)]))
def test_the_attempt_that_started_last_wins_and_of_its_versions_the_highest(order: list[AttemptSummarized]) -> None:
    memory = a_memory()
    add_all(memory, *order)
    assert get_cached_id(memory) == (an_attempt(7).attempt_id, 3)


def test_a_summary_comes_back_as_it_was_added() -> None:
    memory = a_memory()
    add_all(memory, summary := an_attempt())
    cached = memory.get("default", "llm", "deepseek-a", NOW)
    assert cached is not None
    assert cached.read_summary().nodes == summary.nodes
    assert np.array_equal(cached.read_summary().refusal, summary.refusal)


def test_an_attempt_in_parts_appears_when_its_last_part_is_there() -> None:
    summary = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(5_000)])
    parts = split(summary)
    assert len(parts) > 2
    for order in permutations(parts):
        memory = a_memory()
        for seconds, part in enumerate(order):
            assert get_cached_id(memory) is None
            memory.add(part, encode(part).value, NOW + seconds)
        cached = memory.get("default", "llm", "deepseek-a", NOW)
        assert cached is not None
        assert cached.read_summary().nodes == summary.nodes


def test_a_part_that_comes_twice_does_not_replace_another_part() -> None:
    first = split(a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(3_000)]))[0]
    memory = a_memory()
    for _ in range(3):
        memory.add(first, encode(first).value, NOW)
    assert get_cached_id(memory) is None


def test_the_older_attempt_is_answered_until_the_newer_one_is_whole() -> None:
    memory = a_memory()
    add_all(memory, an_attempt(0))
    newer = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(3_000)]).model_copy(
        update={"started_at": STARTED + timedelta(seconds=5), "attempt_id": "ab" * 16}
    )
    *others, last = split(newer)
    for part in others:
        memory.add(part, encode(part).value, NOW)
    assert get_cached_id(memory) == (an_attempt(0).attempt_id, 1)
    memory.add(last, encode(last).value, NOW)
    assert get_cached_id(memory) == ("ab" * 16, 1)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_latest_pods_are_kept_in_any_order_of_replay(order: tuple[int, ...]) -> None:
    memory = a_memory(max_pods=2)
    versions = [int((STARTED + timedelta(seconds=number)).timestamp() * 1e6) for number in range(4)]
    add_all(memory, *(an_attempt(number, versions[number], pod=f"pod{number}") for number in order))
    assert [get_cached_id(memory, f"pod{number}") is not None for number in range(4)] == [False, False, True, True]


def test_a_pod_with_times_in_the_future_is_evicted_like_others() -> None:
    memory = a_memory(max_pods=2)
    far = int((STARTED + timedelta(days=3650)).timestamp() * 1e6)
    add_all(memory, an_attempt(0, far, pod="future"))
    for number in range(3):
        add_all(memory, an_attempt(number, far, pod=f"pod{number}"), now=NOW + 10 + number)
    assert get_cached_id(memory, "future") is None


def test_incomplete_attempts_take_bounded_memory() -> None:
    memory = a_memory(max_bytes=10_000_000)
    summary = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(1_700)])
    for number in range(400):
        part = split(summary)[0].model_copy(update={"attempt_id": f"{number:032x}"})
        memory.add(part, encode(part).value, NOW + number)
    assert memory._incomplete.size_bytes <= 10_000_000
    assert len(memory._incomplete) <= 256


def a_retry(second: int, repeats: int = 0) -> AttemptRepeated:
    first = an_attempt(repeats)
    return a_repetition(
        attempt_id=f"{second:08x}" * 4,
        started_at=STARTED + timedelta(seconds=second),
        ended_at=STARTED + timedelta(seconds=second + 1),
        repeats=first.attempt_id,
        repeats_started_at=first.started_at,
    )


def test_a_retry_is_answered_with_the_nodes_of_the_attempt_that_it_repeats() -> None:
    memory = a_memory()
    add_all(memory, an_attempt())
    memory.add_retry(a_retry(60), NOW)
    memory.add_retry(a_retry(120), NOW)
    cached = memory.get("default", "llm", "deepseek-a", NOW)
    assert cached is not None
    assert (cached.attempt_id, cached.original_id) == (a_retry(120).attempt_id, an_attempt().attempt_id)
    summary = cached.read_summary()
    assert (summary.attempt_id, summary.started_at) == (cached.attempt_id, STARTED + timedelta(seconds=120))
    assert summary.nodes == an_attempt().nodes


def test_an_older_retry_changes_nothing() -> None:
    memory = a_memory()
    add_all(memory, an_attempt(0), an_attempt(90))
    memory.add_retry(a_retry(60), NOW)
    assert get_cached_id(memory) == (an_attempt(90).attempt_id, 1)


def test_a_retry_whose_original_is_not_in_memory_is_left_to_the_index() -> None:
    memory = a_memory()
    add_all(memory, an_attempt(30))
    memory.add_retry(a_retry(60, repeats=0), NOW)
    memory.add_retry(a_retry(60), NOW)
    assert get_cached_id(memory) is None

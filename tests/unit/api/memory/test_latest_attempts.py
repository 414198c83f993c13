"""Which attempt of a pod is the latest, whatever the order in which the records come."""

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


def told(memory: LatestAttempts, *summaries: AttemptSummarized, now: float = NOW) -> None:
    for part in (part for summary in summaries for part in split(summary)):
        memory.add(part, encode(part).value, now)


def an_attempt(second: int = 0, version: int = 1, pod: str = "deepseek-a") -> AttemptSummarized:
    started = STARTED + timedelta(seconds=second)
    name = f"{second:08x}" * 4
    return a_summary(attempt_id=name, started_at=started, version=version, pod=PodRef(namespace="llm", name=pod))


def held_id(memory: LatestAttempts, pod: str = "deepseek-a") -> tuple[str, int] | None:
    held = memory.get("llm", pod, NOW)
    return (held.attempt_id, held.version) if held else None


@given(st.permutations([an_attempt(0, 1), an_attempt(0, 2), an_attempt(7, 1), an_attempt(7, 3), an_attempt(3, 9)]))
def test_the_attempt_that_started_last_wins_then_the_telling_that_knows_most(order: list[AttemptSummarized]) -> None:
    memory = a_memory()
    told(memory, *order)
    assert held_id(memory) == (an_attempt(7).attempt_id, 3)


def test_what_comes_out_is_what_went_in() -> None:
    memory = a_memory()
    told(memory, summary := an_attempt())
    held = memory.get("llm", "deepseek-a", NOW)
    assert held is not None
    assert held.summary().nodes == summary.nodes
    assert np.array_equal(held.summary().refusal, summary.refusal)


def test_an_attempt_in_parts_appears_when_its_last_part_is_there() -> None:
    summary = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(3_000)])
    parts = split(summary)
    assert len(parts) > 2
    for order in permutations(parts):
        memory = a_memory()
        for place, part in enumerate(order):
            assert held_id(memory) is None
            memory.add(part, encode(part).value, NOW + place)
        held = memory.get("llm", "deepseek-a", NOW)
        assert held is not None
        assert held.summary().nodes == summary.nodes


def test_a_part_told_twice_stands_for_no_other_part() -> None:
    first = split(a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(3_000)]))[0]
    memory = a_memory()
    for _ in range(3):
        memory.add(first, encode(first).value, NOW)
    assert held_id(memory) is None


def test_the_older_attempt_is_answered_until_the_newer_one_is_whole() -> None:
    memory = a_memory()
    told(memory, an_attempt(0))
    newer = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(3_000)]).model_copy(
        update={"started_at": STARTED + timedelta(seconds=5), "attempt_id": "ab" * 16}
    )
    *most, last = split(newer)
    for part in most:
        memory.add(part, encode(part).value, NOW)
    assert held_id(memory) == (an_attempt(0).attempt_id, 1)
    memory.add(last, encode(last).value, NOW)
    assert held_id(memory) == ("ab" * 16, 1)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_latest_pods_are_kept_in_whatever_order_partitions_are_replayed(order: tuple[int, ...]) -> None:
    memory = a_memory(max_pods=2)
    versions = [int((STARTED + timedelta(seconds=number)).timestamp() * 1e6) for number in range(4)]
    told(memory, *(an_attempt(number, versions[number], pod=f"pod{number}") for number in order))
    assert [held_id(memory, f"pod{number}") is not None for number in range(4)] == [False, False, True, True]


def test_a_clock_from_the_future_does_not_keep_a_pod_for_ever() -> None:
    memory = a_memory(max_pods=2)
    far = int((STARTED + timedelta(days=3650)).timestamp() * 1e6)
    told(memory, an_attempt(0, far, pod="future"))
    for number in range(3):
        told(memory, an_attempt(number, far, pod=f"pod{number}"), now=NOW + 10 + number)
    assert held_id(memory, "future") is None


def test_half_told_attempts_take_bounded_room() -> None:
    memory = a_memory(max_bytes=10_000_000)
    whole = a_summary([f"gpu-node-{number:05d}.cluster.local" for number in range(1_700)])
    for number in range(400):
        part = split(whole)[0].model_copy(update={"attempt_id": f"{number:032x}"})
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
    told(memory, an_attempt())
    memory.add_retry(a_retry(60), NOW)
    memory.add_retry(a_retry(120), NOW)
    held = memory.get("llm", "deepseek-a", NOW)
    assert held is not None
    assert (held.attempt_id, held.original_id) == (a_retry(120).attempt_id, an_attempt().attempt_id)
    summary = held.summary()
    assert (summary.attempt_id, summary.started_at) == (held.attempt_id, STARTED + timedelta(seconds=120))
    assert summary.nodes == an_attempt().nodes


def test_an_older_retry_changes_nothing() -> None:
    memory = a_memory()
    told(memory, an_attempt(0), an_attempt(90))
    memory.add_retry(a_retry(60), NOW)
    assert held_id(memory) == (an_attempt(90).attempt_id, 1)


def test_a_retry_of_what_is_not_in_memory_is_left_to_the_index() -> None:
    memory = a_memory()
    told(memory, an_attempt(30))
    memory.add_retry(a_retry(60, repeats=0), NOW)
    memory.add_retry(a_retry(60), NOW)
    assert held_id(memory) is None

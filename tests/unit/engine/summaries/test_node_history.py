"""Checks and registrations by time: order and repetition of the events do not matter."""

import itertools
from datetime import timedelta

import pytest

from engine.summaries.node_history import NodeHistory, NodeKey
from schemas.events import NodeChecked, NodeRegistered
from tests.support.builders.events import STARTED

NODE = NodeKey("default", "n1")


def a_check(minute: int, scheduler: str = "a", node: str = "n1", cluster: str = "default") -> NodeChecked:
    moment = STARTED + timedelta(minutes=minute)
    return NodeChecked(cluster=cluster, node=node, observed_at=moment, scheduler=scheduler, problems=[])


def a_registration(minute: int, scheduler: str = "a") -> NodeRegistered:
    moment = STARTED + timedelta(minutes=minute)
    return NodeRegistered(
        cluster="default", node="n1", observed_at=moment, scheduler=scheduler, registered=True,
        uuid=[], model=[], mode=[], index=[], numa=[], memory_mib=[], cores_percent=[], slots=[], healthy=[],
    )  # fmt: skip


def list_minutes(history: NodeHistory, minute: int, node: NodeKey = NODE) -> list[tuple[str, int]]:
    """List scheduler and minute of the latest checks up to a minute."""
    checks = history.iterate_latest_checks(node, STARTED + timedelta(minutes=minute))
    return [(check.scheduler, (check.observed_at - STARTED) // timedelta(minutes=1)) for check in checks]


def find_minutes(history: NodeHistory, minute: int, until: int, scheduler: str = "a") -> tuple[int | None, ...]:
    moments = [STARTED + timedelta(minutes=number) for number in (minute, until)]
    return tuple(
        (event.observed_at - STARTED) // timedelta(minutes=1) if event else None
        for event in history.find_registrations(NODE, scheduler, moments[0], moments[1])
    )


EVENTS = [a_check(1), a_check(5), a_check(3, "b"), a_check(2, node="n2"), a_check(5)]


@pytest.mark.parametrize("events", list(itertools.permutations(EVENTS))[::7])
def test_the_latest_check_of_each_scheduler_counts(events: tuple[NodeChecked, ...]) -> None:
    history = NodeHistory()
    for event in events:
        history.see(event)
    assert list_minutes(history, 0) == []
    assert list_minutes(history, 1) == [("a", 1)]
    assert list_minutes(history, 4) == [("a", 1), ("b", 3)]
    assert list_minutes(history, 5) == [("a", 5), ("b", 3)]
    assert list_minutes(history, 9, NodeKey("default", "n2")) == [("a", 2)]
    assert list_minutes(history, 9, NodeKey("other", "n1")) == []


@pytest.mark.parametrize("minutes", list(itertools.permutations([1, 3, 6])))
def test_a_registration_counts_until_the_next_one(minutes: tuple[int, ...]) -> None:
    history = NodeHistory()
    for minute in (*minutes, *minutes):
        history.see(a_registration(minute))
    assert find_minutes(history, 0, 0) == (None, None)
    assert find_minutes(history, 0, 1) == (None, 1)
    assert find_minutes(history, 1, 2) == (1, None)
    assert find_minutes(history, 2, 3) == (1, 3)
    assert find_minutes(history, 2, 9) == (1, 6)
    assert find_minutes(history, 6, 9) == (6, None)
    assert find_minutes(history, 2, 9, "b") == (None, None)


def test_what_was_superseded_is_dropped_and_what_held_remains() -> None:
    history = NodeHistory()
    for minute in (1, 3, 6):
        history.see(a_registration(minute))
        history.see(a_check(minute))
    history.forget(STARTED + timedelta(minutes=5))
    assert find_minutes(history, 2, 9) == (None, 6)
    assert find_minutes(history, 3, 9) == (3, 6)
    assert (list_minutes(history, 2), list_minutes(history, 5), list_minutes(history, 6)) == (
        [],
        [("a", 3)],
        [("a", 6)],
    )
    history.forget(STARTED)
    assert find_minutes(history, 3, 9) == (3, 6)

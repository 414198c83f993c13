"""Counting of messages in events: each once, in any order, however often it is read."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.foreign_namespaces import KnownNamespaces
from pipeline.kube_events.event_object import COUNTED, make_event, make_patch, parse_event
from pipeline.kube_events.event_series import FRESH, REMEMBERED, AttemptCounts, EventSeries, derive_name
from schemas.events import PodMessage
from tests.support.builders.messages import BEGAN, TRAINER, a_message

FRESH_SECONDS = int(FRESH.total_seconds())


class EventStore:
    """Events as an API server keeps them, without a server."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}

    def write(self, messages: Sequence[PodMessage]) -> None:
        """Write the messages as a process does that has just started."""
        series = EventSeries()
        for event in self.events.values():
            series.put("ml", parse_event(event))
        for (_, name), assigned in series.assign(messages).items():
            published = series.get("ml", name)
            fresh = published.read_counts().list_uncounted(assigned) if published else assigned
            if not fresh:
                continue
            if published is None:
                self.events[name] = make_event(name, fresh, KnownNamespaces())
            else:
                change = make_patch(published, published.read_counts(), fresh)
                self.events[name]["series"] = change["series"]
                self.events[name]["metadata"]["annotations"] = change["metadata"]["annotations"]
            self.events[name]["metadata"]["resourceVersion"] = "1"

    def list_counts(self) -> list[tuple[str, int]]:
        return sorted((event["note"], event.get("series", {}).get("count", 1)) for event in self.events.values())


def test_equal_messages_are_one_event_that_counts_them() -> None:
    store = EventStore()
    store.write([a_message(number) for number in range(1_000)])
    assert store.list_counts() == [("3 nodes NumaNotFit(a,b,c)", 1_000)]


def test_one_message_is_an_event_without_a_series() -> None:
    assert "series" not in make_event("x", [a_message()], KnownNamespaces())


def test_another_reason_code_or_another_pod_of_the_name_is_another_event() -> None:
    next_pod = TRAINER.model_copy(update={"uid": "uid-2"})
    store = EventStore()
    store.write([a_message(), a_message(1, code="CardCordoned"), a_message(2, pod=next_pod)])
    assert len(store.events) == 3


def test_another_text_is_counted_by_the_newest_event_while_that_is_fresh() -> None:
    store = EventStore()
    for number in range(0, FRESH_SECONDS + 300, 60):
        store.write([a_message(number, f"{number} nodes NumaNotFit(...)")])
    assert store.list_counts() == [("0 nodes NumaNotFit(...)", 10), ("600 nodes NumaNotFit(...)", 5)]


def test_a_text_that_comes_back_is_counted_by_its_own_event() -> None:
    store = EventStore()
    times = (0, FRESH_SECONDS, FRESH_SECONDS + 1, FRESH_SECONDS + 2)
    for number, text in zip(times, ("a", "b", "a", "b"), strict=True):
        store.write([a_message(number, text)])
    assert store.list_counts() == [("a", 2), ("b", 2)]


def test_an_attempt_that_is_reported_late_is_counted_too() -> None:
    store = EventStore()
    store.write([a_message(0), a_message(2), a_message(3)])
    store.write([a_message(1)])
    assert store.list_counts()[0][1] == 4


@given(st.integers(0, 10_000), st.integers(1, 150), st.integers(1, 4))
def test_reading_again_in_batches_of_any_size_changes_nothing(seed: int, count: int, texts: int) -> None:
    rng = random.Random(seed)
    messages = [a_message(number * 31, f"text {rng.randrange(texts)}") for number in range(count)]
    store = EventStore()
    start = 0
    while start < count:
        step = rng.randint(1, 20)
        # A process was killed before it acknowledged: up to forty messages come again with the new ones.
        store.write(messages[max(0, start - rng.randint(0, 40)) : start + step])
        start += step
    once = store.list_counts()
    assert sum(number for _, number in once) == count
    store.write(messages)
    assert store.list_counts() == once


def test_the_counted_attempts_of_an_event_are_read_back() -> None:
    counted = AttemptCounts().with_more(a_message(number) for number in range(3 * REMEMBERED))
    assert AttemptCounts.read(counted.write()) == counted
    assert len(counted.write()) < 2_000


def test_the_name_is_valid_in_kubernetes_and_never_changes() -> None:
    long = TRAINER.model_copy(update={"name": "a" * 253})
    assert len(derive_name(a_message(pod=long))) <= 253
    assert derive_name(a_message(0)) == derive_name(a_message(7))


def test_events_that_the_api_server_has_dropped_leave_memory() -> None:
    store, series = EventStore(), EventSeries()
    store.write([a_message()])
    (event,) = store.events.values()
    series.put("ml", parse_event(event))
    series.prune(BEGAN + timedelta(hours=1))
    assert len(series) == 1
    series.prune(BEGAN + timedelta(hours=3))
    assert len(series) == 0


def test_an_event_without_our_labels_is_not_taken_for_ours() -> None:
    event = make_event("x", [a_message()], KnownNamespaces()) | {
        "metadata": {"name": "x", "annotations": {COUNTED: "0"}, "labels": {}}
    }
    with pytest.raises(ValueError, match="not an event of this program"):
        parse_event(event)

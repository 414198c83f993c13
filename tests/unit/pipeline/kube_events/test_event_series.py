"""Which event counts which message: each once, in any order, however often it is read."""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kube_events.event_object import COUNTED, more, new_event, told_of
from pipeline.kube_events.event_series import FRESH, REMEMBERED, Book, Counted, name_of
from schemas.events import MessageEmitted
from tests.support.builders.messages import BEGAN, TRAINER, a_message

FRESH_SECONDS = int(FRESH.total_seconds())


class Written:
    """Events as an API server keeps them, without a server."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}

    def tell(self, messages: Sequence[MessageEmitted]) -> None:
        """As a process does that has just started."""
        book = Book()
        for event in self.events.values():
            book.put("ml", told_of(event))
        for (_, name), assigned in book.assign(messages).items():
            told = book.get("ml", name)
            fresh = told.uncounted(assigned) if told else assigned
            if not fresh:
                continue
            if told is None:
                self.events[name] = new_event(name, fresh)
            else:
                change = more(told, fresh)
                self.events[name]["series"] = change["series"]
                self.events[name]["metadata"]["annotations"] = change["metadata"]["annotations"]
            self.events[name]["metadata"]["resourceVersion"] = "1"

    def counts(self) -> list[tuple[str, int]]:
        return sorted((each["note"], each.get("series", {}).get("count", 1)) for each in self.events.values())


def test_equal_messages_are_one_event_that_counts_them() -> None:
    written = Written()
    written.tell([a_message(number) for number in range(1_000)])
    assert written.counts() == [("3 nodes NumaNotFit(a,b,c)", 1_000)]


def test_one_message_is_an_event_without_a_series() -> None:
    assert "series" not in new_event("x", [a_message()])


def test_another_reason_code_or_another_life_of_the_pod_is_another_event() -> None:
    reborn = TRAINER.model_copy(update={"uid": "uid-2"})
    written = Written()
    written.tell([a_message(), a_message(1, code="CardCordoned"), a_message(2, pod=reborn)])
    assert len(written.events) == 3


def test_another_text_is_counted_by_the_event_that_is_there_until_that_is_no_longer_fresh() -> None:
    written = Written()
    for number in range(0, FRESH_SECONDS + 300, 60):
        written.tell([a_message(number, f"{number} nodes NumaNotFit(...)")])
    assert written.counts() == [("0 nodes NumaNotFit(...)", 10), ("600 nodes NumaNotFit(...)", 5)]


def test_a_text_that_comes_back_goes_on_where_it_was() -> None:
    written = Written()
    times = (0, FRESH_SECONDS, FRESH_SECONDS + 1, FRESH_SECONDS + 2)
    for number, text in zip(times, ("a", "b", "a", "b"), strict=True):
        written.tell([a_message(number, text)])
    assert written.counts() == [("a", 2), ("b", 2)]


def test_an_attempt_that_is_told_late_is_counted_too() -> None:
    written = Written()
    written.tell([a_message(0), a_message(2), a_message(3)])
    written.tell([a_message(1)])
    assert written.counts()[0][1] == 4


@given(st.integers(0, 10_000), st.integers(1, 150), st.integers(1, 4))
def test_reading_again_in_any_cut_changes_nothing(seed: int, count: int, texts: int) -> None:
    rng = random.Random(seed)
    said = [a_message(number * 31, f"text {rng.randrange(texts)}") for number in range(count)]
    written = Written()
    at = 0
    while at < count:
        step = rng.randint(1, 20)
        # A process was killed before it acknowledged: up to forty messages come again with the new ones.
        written.tell(said[max(0, at - rng.randint(0, 40)) : at + step])
        at += step
    once = written.counts()
    assert sum(number for _, number in once) == count
    written.tell(said)
    assert written.counts() == once


def test_what_an_event_says_it_has_counted_is_read_back() -> None:
    counted = Counted().with_more(a_message(number) for number in range(3 * REMEMBERED))
    assert Counted.read(counted.write()) == counted
    assert len(counted.write()) < 2_000


def test_the_name_is_one_that_kubernetes_takes_and_never_changes() -> None:
    long = TRAINER.model_copy(update={"name": "a" * 253})
    assert len(name_of(a_message(pod=long))) <= 253
    assert name_of(a_message(0)) == name_of(a_message(7))


def test_the_book_forgets_what_the_api_server_has_forgotten() -> None:
    written, book = Written(), Book()
    written.tell([a_message()])
    (event,) = written.events.values()
    book.put("ml", told_of(event))
    book.prune(BEGAN + timedelta(hours=1))
    assert len(book) == 1
    book.prune(BEGAN + timedelta(hours=3))
    assert len(book) == 0


def test_an_event_that_somebody_has_changed_is_not_ours() -> None:
    event = new_event("x", [a_message()]) | {"metadata": {"name": "x", "annotations": {COUNTED: "0"}, "labels": {}}}
    with pytest.raises(ValueError, match="no event of ours"):
        told_of(event)

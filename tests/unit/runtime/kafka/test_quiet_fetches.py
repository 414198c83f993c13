"""Fetches are held longer while nothing arrives, and short again with the first record."""

from collections.abc import Iterable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher

from runtime.kafka.quiet_fetches import QuietFetcher


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Answers:
    """Stands in for aiokafka's own method: each fetch takes the time for which it is held, or comes with a record."""

    def __init__(self, clock: Clock, answers: Iterable[tuple[float, bool]]) -> None:
        self._clock, self._answers = clock, iter(answers)

    async def proceed(self, *_: Any) -> bool:
        seconds, has_records = next(self._answers)
        self._clock.now += seconds
        return has_records


def build_fetcher(monkeypatch: pytest.MonkeyPatch, answers: Iterable[tuple[float, bool]]) -> QuietFetcher:
    clock = Clock()
    monkeypatch.setattr("runtime.kafka.quiet_fetches.time", clock)
    monkeypatch.setattr(Fetcher, "_proc_fetch_request", Answers(clock, answers).proceed)
    monkeypatch.setattr(
        Fetcher, "__init__", lambda fetcher, wait_ms, **_: setattr(fetcher, "_fetch_max_wait_ms", wait_ms)
    )
    return QuietFetcher(500)


async def test_a_fetch_is_held_as_long_as_nothing_has_arrived_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = build_fetcher(monkeypatch, [(0.0, True), (0.5, False), (0.5, False), (1.0, False), (2.0, False)])
    assignment, holds = object(), [fetcher._fetch_max_wait_ms]
    for _ in range(5):
        await fetcher._proc_fetch_request(assignment, 1, None)
        holds.append(fetcher._fetch_max_wait_ms)
    # The consumer's own half second at first; at most four times as long, after 4 s without a record.
    assert holds == [500, 500, 500, 1_000, 2_000, 2_000]


async def test_the_first_record_makes_fetches_short_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = build_fetcher(monkeypatch, [(0.0, True), (30.0, False), (1.7, True)])
    assignment = object()
    for _ in range(2):
        await fetcher._proc_fetch_request(assignment, 1, None)
    assert fetcher._fetch_max_wait_ms == 2_000
    await fetcher._proc_fetch_request(assignment, 1, None)
    assert fetcher._fetch_max_wait_ms == 500


async def test_fetches_are_short_after_partitions_were_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = build_fetcher(monkeypatch, [(0.0, False), (30.0, False), (2.0, False)])
    before = object()
    for assignment in (before, before):
        await fetcher._proc_fetch_request(assignment, 1, None)
    assert fetcher._fetch_max_wait_ms == 2_000
    await fetcher._proc_fetch_request(object(), 1, None)
    assert fetcher._fetch_max_wait_ms == 500


def test_every_consumer_has_this_fetcher() -> None:
    # A consumer is given the class by this name when it is started.
    assert AIOKafkaConsumer.start.__globals__["Fetcher"] is QuietFetcher

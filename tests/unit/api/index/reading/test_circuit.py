"""M14: an OpenSearch that hangs is waited for by a few callers, for as long as one answer may take."""

import asyncio
from typing import Any

import httpx
import pytest

from api.http.caller_wait import CallerWait
from api.index.reading import client
from api.index.reading.circuit import OPEN_SECONDS, TIMEOUTS, Circuit, CircuitOpenError
from api.index.reading.client import IndexDownError, IndexProbe, IndexTimeoutError, OpenSearch
from tests.support.harness.api_app import answer_nothing, index_of

EVERYTHING: dict[str, Any] = {"query": {"match_all": {}}}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def fail_by_timeout(circuit: Circuit) -> None:
    with pytest.raises(TimeoutError), circuit.request():
        raise TimeoutError


def is_refused(circuit: Circuit) -> bool:
    """Tell whether the circuit refuses a request; its caller goes away before there is an answer."""
    request = circuit.request()
    try:
        request.__enter__()
    except CircuitOpenError:
        return True
    assert not request.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)
    return False


def test_m14_time_outs_in_a_row_open_it_and_one_request_a_second_tries() -> None:
    clock = Clock()
    circuit = Circuit(clock)
    for _ in range(TIMEOUTS):
        assert not is_refused(circuit)
        fail_by_timeout(circuit)
    assert [is_refused(circuit) for _ in range(2)] == [True, True]
    for _ in range(3):
        clock.now += OPEN_SECONDS
        assert [is_refused(circuit) for _ in range(3)] == [False, True, True]
    clock.now += OPEN_SECONDS
    with circuit.request():
        pass
    assert [is_refused(circuit) for _ in range(3)] == [False, False, False]


def test_m14_an_answer_between_them_keeps_it_closed_and_so_does_an_error() -> None:
    circuit = Circuit(Clock())
    for _ in range(5):
        fail_by_timeout(circuit)
        fail_by_timeout(circuit)
        with pytest.raises(IndexDownError), circuit.request():
            raise IndexDownError("HTTP 503")
    assert not is_refused(circuit)


def test_m14_a_trial_that_takes_long_keeps_no_other_from_trying() -> None:
    clock = Clock()
    circuit = Circuit(clock)
    for _ in range(TIMEOUTS):
        fail_by_timeout(circuit)
    clock.now += OPEN_SECONDS
    with circuit.request():
        assert is_refused(circuit)
        clock.now += OPEN_SECONDS
        assert not is_refused(circuit)


def test_a_wait_begins_with_the_first_read() -> None:
    clock = Clock()
    wait = CallerWait(10, clock)
    clock.now += 60
    assert wait.count_remaining_seconds() == 10
    clock.now += 4
    assert wait.count_remaining_seconds() == 6


async def test_m14_the_reads_for_one_caller_take_so_long_together() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        if is_hanging:
            await asyncio.sleep(60)
        return answer_nothing(request)

    clock, is_hanging = Clock(), False
    index = OpenSearch(index_of(answer), lambda *_: None, 10)
    with CallerWait(10, clock):
        await index.search("a", EVERYTHING)
        clock.now += 9.97
        is_hanging = True
        with pytest.raises(IndexTimeoutError, match=r"no answer within 0\.0\d+ s"):
            await index.search("a", EVERYTHING)
        clock.now += 0.03
        with pytest.raises(IndexDownError, match="took more than 10 s together"):
            await index.search("a", EVERYTHING)
    is_hanging = False
    await index.search("a", EVERYTHING)


async def test_m14_a_refused_request_is_not_sent_and_a_ping_is() -> None:
    async def hang(_: httpx.Request) -> httpx.Response:
        sent.append(1)
        await asyncio.sleep(60)
        raise AssertionError

    sent: list[int] = []
    index = OpenSearch(index_of(hang), lambda *_: None, 0.01)
    for _ in range(TIMEOUTS):
        with pytest.raises(IndexTimeoutError):
            await index.search("a", EVERYTHING)
    with pytest.raises(IndexDownError, match="the last 3 requests were not answered in time"):
        await index.search("a", EVERYTHING)
    assert len(sent) == TIMEOUTS
    assert index.refused == 1
    pinging = asyncio.ensure_future(index.ping())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(sent) == TIMEOUTS + 1
    pinging.cancel()


async def test_m14_one_probe_is_sent_for_all_who_ask_and_one_that_hangs_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        sent.append(1)
        await resumed.wait()
        return answer_nothing(request)

    sent, resumed = list[int](), asyncio.Event()
    resumed.set()
    probe = IndexProbe(OpenSearch(index_of(answer), lambda *_: None, 10))
    assert await asyncio.gather(*(probe.find_problem() for _ in range(20))) == [""] * 20
    assert len(sent) == 1
    resumed.clear()
    monkeypatch.setattr(client, "PING_TIMEOUT_SECONDS", 0.05)
    assert await asyncio.gather(*(probe.find_problem() for _ in range(20))) == ["no answer within 0.05 s"] * 20
    assert len(sent) == 2
    monkeypatch.setattr(client, "PING_TIMEOUT_SECONDS", 600)
    async with asyncio.timeout(60):
        assert await probe.find_problem() == "no answer within 0.05 s"
        monkeypatch.setattr(client, "BACK_SECONDS", 60)
        resumed.set()
        assert await probe.find_problem() == "", "the first one who asks after OpenSearch is back"

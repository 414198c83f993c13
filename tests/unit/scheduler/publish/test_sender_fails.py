"""H6: whatever fails of the sender, its reads, its checkpoint or Kafka's client: what was accepted is in Kafka."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import aiokafka.errors
import pytest
from aiokafka.errors import BrokerResponseError, KafkaError

from runtime.settings.kafka_connection import build_kafka_connection
from scheduler.metrics import Metrics
from scheduler.publish import kafka_publisher
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.spool.spool import Spool, SpoolLimits
from tests.support.builders.spool_entries import Clock, a_verdict
from tests.support.harness.failing_calls import FAILURES, TO_THE_END, Faults, without_syncs
from tests.support.harness.fake_producer import SITES, FakeKafka
from tests.support.stress import IS_STRESS

SMALL = SpoolLimits(segment_bytes=400)
ROUNDS = 10
COUNTS = (1, 3, TO_THE_END)
KAFKA_ERRORS: Final[list[Callable[[], BaseException]]] = [
    error
    for error in vars(aiokafka.errors).values()
    # The base of what brokers answer has no number, and no words.
    if isinstance(error, type) and issubclass(error, KafkaError) and error is not BrokerResponseError
]
"""Every error of the client: time-outs, brokers that are away, too few replicas, records too large, missing rights."""
OTHER_ERRORS: Final[list[Callable[[], BaseException]]] = [
    OSError, ConnectionResetError, TimeoutError, MemoryError, RuntimeError, asyncio.CancelledError,
]  # fmt: skip


class Sending:
    def __init__(self, folder: Path) -> None:
        self.kafka, self.clock, self.accepted = FakeKafka(), Clock(), list[bytes]()
        self.spool = Spool(folder, SMALL, self.clock, monotonic=lambda: self.clock.now.timestamp())
        self.publisher = Publisher(self.spool, build_kafka_connection("broker:9092"), self.clock, Metrics(), self.kafka)

    async def accept(self) -> None:
        self.clock.advance(2)
        name = str(len(self.accepted))
        self.spool.append([a_verdict(name)])
        await self.spool.flush()
        self.accepted.append(name.encode())

    async def wait_until_sent(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.spool.unsent_bytes:  # noqa: ASYNC110 - looks from outside
                await asyncio.sleep(0.001)

    @property
    def in_kafka(self) -> list[bytes]:
        """Each once, in the order of its last sending."""
        return list(dict.fromkeys(reversed(self.kafka.log)))[::-1]


@asynccontextmanager
async def sending(folder: Path) -> AsyncIterator[Sending]:
    sender = Sending(folder)
    task = asyncio.create_task(sender.publisher.run())
    try:
        yield sender
        assert not task.done()
    finally:
        task.cancel()
        # Also where the producer can't be stopped.
        async with asyncio.timeout(10):
            await asyncio.gather(task, return_exceptions=True)
        sender.spool.close()


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    without_syncs(monkeypatch)
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(kafka_publisher, name, 0.001)


async def run(folder: Path, faults: Faults) -> None:
    async with sending(folder) as sender:
        with faults.injected():
            for _ in range(ROUNDS):
                await sender.accept()
                # While it can't be read, nothing is sent.
                with suppress(TimeoutError):
                    await sender.wait_until_sent(0.01)
        sender.clock.advance(2)
        await sender.wait_until_sent(10)
        assert sender.in_kafka == sender.accepted
        # The disk is tried again where no further record comes.
        async with asyncio.timeout(10):
            while sender.spool.problem or sender.spool.reading.text or sender.publisher.problem:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


@pytest.mark.stress
@pytest.mark.parametrize("failure", FAILURES)
async def test_h6_whichever_call_fails_while_it_sends_what_was_accepted_is_in_kafka(
    tmp_path: Path, failure: str
) -> None:
    counting = Faults(failure)
    await run(tmp_path / "counted", counting)
    calls = counting.seen.total()
    assert calls > 100
    for number, count in enumerate(COUNTS):
        for first in range(1, calls + 1) if IS_STRESS else range(1 + 8 * number, calls + 1, 8 * len(COUNTS)):
            await run(tmp_path / f"{first}-{count}", Faults(failure, first, count))


@pytest.mark.parametrize("site", SITES)
async def test_h6_however_kafkas_client_fails_what_was_accepted_is_in_kafka(tmp_path: Path, site: str) -> None:
    problems: list[str] = []
    left = {"acknowledgement": 0, site: 0}

    async with sending(tmp_path) as sender:
        for error in KAFKA_ERRORS + OTHER_ERRORS:
            if error is asyncio.CancelledError and "acknowledgement" not in site:
                continue  # whatever else awaits it is cancelled itself

            def fail(call: str, _: bytes, error: Callable[[], BaseException] = error) -> BaseException | None:
                if not left.get(call):
                    return None
                left[call] -= 1
                problems.append(sender.publisher.problem)
                return error() if call == site else KafkaError()

            # A producer is started and stopped where the one before it has failed.
            left.update({"acknowledgement": 1, site: 3})
            sender.kafka.failure = fail
            problems.clear()
            await sender.accept()
            await sender.wait_until_sent(10)
            if site != "stop":
                assert left[site] == 0
                assert all(problems[1:]), "it says what is wrong"
            assert sender.publisher.problem == ""
        assert sender.in_kafka == sender.accepted
    assert len(KAFKA_ERRORS) > 100

"""The worker's state: which histories it has in memory, and what it takes from the topic."""

import asyncio
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from dev.bench.cpu import read_resident_mib
from pipeline.worker.published import DECODED, PodHistories
from schemas.codec.records import EncodedRecord, encode
from schemas.events import PodHistoryChanged, PodRef
from schemas.topics import POD_HISTORIES
from tests.support.builders.attempts import STARTED, an_attempt, build_common
from tests.support.builders.events import a_pod_history, a_published_attempt
from tests.support.fakes.topics import TAKEN_AT_MS, FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import Clock, a_worker

NOW = TAKEN_AT_MS / 1000


def a_history(minute: int, until: int) -> PodHistoryChanged:
    latest = a_published_attempt(attempt_id=f"attempt-{minute}", started_at=STARTED + timedelta(minutes=minute))
    return a_pod_history(published_until=until, attempts=[latest])


async def load_histories(*stored: PodHistoryChanged) -> PodHistories:
    """Load the histories of partition 1, on which these were written in this order."""
    topics = FakeTopics()
    await topics.send([encode(history, POD_HISTORIES.name, 1) for history in stored])
    histories = PodHistories(topics)
    await histories.load([1])
    return histories


async def test_the_latest_history_of_a_pod_holds() -> None:
    histories = await load_histories(a_history(0, 7), a_history(1, 9))
    assert histories.get(1, a_history(1, 9).key) == a_history(1, 9)
    assert len(histories) == 1
    assert histories.get(0, a_history(1, 9).key) is None


async def test_a_history_takes_little_more_memory_than_its_json() -> None:
    histories = await load_histories()
    attempt = a_published_attempt()

    def put(first: int, end: int) -> int:
        """Put histories, and return the bytes of their JSON."""
        size = 0
        for number in range(first, end):
            history = a_pod_history(pod=PodRef(namespace="ml", name=f"pod-{number}", uid=""), attempts=[attempt])
            value = encode(history).value
            histories.put(1, history, value)
            size += len(value)
        return size

    # Of so many objects are kept as well: later ones take the place of earlier ones.
    put(0, DECODED)
    before = read_resident_mib(os.getpid())
    size = put(DECODED, DECODED + 3_000)
    assert (read_resident_mib(os.getpid()) - before) * 2**20 < 4 * size
    assert len(histories) == DECODED + 3_000


async def test_what_a_worker_writes_behind_the_one_that_took_over_does_not_hold() -> None:
    histories = await load_histories(a_history(0, 7), a_history(2, 15), a_history(1, 9))
    assert histories.get(1, a_history(0, 0).key) == a_history(2, 15)


async def test_a_history_of_a_topic_of_decisions_that_was_made_again_holds() -> None:
    histories = await load_histories(a_history(0, 90), a_history(1, 2))
    assert histories.get(1, a_history(0, 0).key) == a_history(1, 2)


async def test_a_history_that_cant_be_read_is_as_none() -> None:
    topics = FakeTopics()
    good = encode(a_history(0, 7))
    await topics.send([EncodedRecord(good.key, b"{", good.headers, POD_HISTORIES.name, 1)])
    histories = PodHistories(topics)
    await histories.load([1])
    assert histories.get(1, a_history(0, 7).key) is None


async def test_histories_are_forgotten_when_the_topic_forgets_them() -> None:
    clock = Clock()
    clock.now = NOW
    histories = PodHistories(FakeTopics(), clock)
    await histories.load([1])
    old, new = a_history(0, 7), a_pod_history(scheduler="volcano")
    histories.put(1, old, encode(old).value)
    clock.now += POD_HISTORIES.retention.total_seconds() - 1
    histories.put(1, new, encode(new).value)
    assert histories.get(1, old.key) == old
    clock.now += 2
    histories.put(1, new, encode(new).value)
    assert histories.get(1, old.key) is None
    assert histories.get(1, new.key) == new


async def test_what_was_read_while_the_partition_was_revoked_is_dropped() -> None:
    reading, may_continue = asyncio.Event(), asyncio.Event()

    class Slow(FakeTopics):
        async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
            reading.set()
            await may_continue.wait()
            await super().read_all(topic, partitions, take)

    topics, history = Slow(), a_history(0, 7)
    await topics.send([encode(history, POD_HISTORIES.name, 1)])
    histories = PodHistories(topics)
    loading = asyncio.create_task(histories.load([1]))
    await reading.wait()
    histories.clear()
    may_continue.set()
    await loading
    assert len(histories) == 0
    await histories.load([1])
    assert histories.get(1, history.key) == history


async def test_decisions_whose_topic_was_deleted_and_made_again_are_published_though_their_offsets_begin_at_0() -> None:
    topics, before, after = FakeTopics(), Log(), Log()
    refusing = {"node1": [["CardCordoned"]]}
    for number in range(3):
        before.append(*an_attempt(refusing, **build_common(f"pod-{number}")))
    later = {"attempt_id": "later", "started_at": STARTED + timedelta(hours=1)}
    after.append(*an_attempt(refusing, **build_common("pod-2") | later))
    for log in (before, after):
        async with a_worker(topics) as worker:
            await worker.read(*log.records)
    assert after.records[-1].offset < before.records[-1].offset
    assert "later" in list_published(topics)

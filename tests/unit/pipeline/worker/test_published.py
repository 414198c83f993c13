"""The worker's state: which histories it has in memory, and what it takes from the topic."""

import asyncio
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from dev.bench.cpu import read_resident_mib
from pipeline.worker.batch import HistoryKey
from pipeline.worker.pod_positions import LATEST, STRETCHES, PodPosition, PositionsReader
from pipeline.worker.published import PodHistories
from schemas.codec.records import EncodedRecord, encode
from schemas.events import PodHistoryChanged, PodRef
from schemas.topics import POD_HISTORIES
from tests.support.builders.attempts import STARTED, an_attempt, build_common
from tests.support.builders.events import a_pod_history, a_published_attempt
from tests.support.fakes.topics import FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import Clock, a_worker

FILLING, PODS = 50_000, 100_000
"""Pods until the memory grows by positions alone, and after that."""


def a_history(minute: int, until: int) -> PodHistoryChanged:
    latest = a_published_attempt(attempt_id=f"attempt-{minute}", started_at=STARTED + timedelta(minutes=minute))
    return a_pod_history(published_until=until, attempts=[latest])


HISTORY_KEY: Final = HistoryKey(1, a_history(0, 0).key)


async def load_histories(*stored: PodHistoryChanged) -> PodHistories:
    """Load the histories of partition 1, on which these were written in this order."""
    topics = FakeTopics()
    await topics.send([encode(history, POD_HISTORIES.name, 1) for history in stored])
    histories = PodHistories(topics)
    await read(histories, HISTORY_KEY)
    return histories


async def read(histories: PodHistories, key: HistoryKey) -> PodHistoryChanged | None:
    return (await histories.read([key])).get(key)


async def test_the_latest_history_of_a_pod_holds() -> None:
    histories = await load_histories(a_history(0, 7), a_history(1, 9))
    assert await read(histories, HISTORY_KEY) == a_history(1, 9)
    assert len(histories) == 1
    assert await read(histories, HistoryKey(0, HISTORY_KEY.key)) is None


async def test_a_pod_takes_less_than_150_bytes_beyond_the_cache() -> None:
    histories = PodHistories(FakeTopics(), cache_bytes=2**20)
    await read(histories, HISTORY_KEY)
    history = a_history(0, 7)
    value = encode(history).value

    def put(first: int, end: int) -> None:
        for number in range(first, end):
            histories.put(HistoryKey(1, f"c1/ml/pod-{number}/hami-scheduler"), history, value, number)

    put(0, FILLING)
    before = read_resident_mib(os.getpid())
    put(FILLING, FILLING + PODS)
    assert (read_resident_mib(os.getpid()) - before) * 2**20 < 150 * PODS
    assert len(histories) == FILLING + PODS


async def test_the_history_of_a_pod_that_is_not_in_memory_is_read_from_the_topic() -> None:
    topics = FakeTopics()
    histories = PodHistories(topics, cache_bytes=1)
    written: dict[HistoryKey, PodHistoryChanged] = {}
    for number in range(3 * LATEST):
        history = a_pod_history(pod=PodRef(namespace="ml", name=f"pod-{number}", uid=""), published_until=number)
        record = encode(history, POD_HISTORIES.name, 1)
        key = HistoryKey(1, history.key)
        if not written:
            await read(histories, key)
        (position,) = await topics.send([record])
        histories.put(key, history, record.value, position.offset)
        written[key] = history
    wanted = dict(list(written.items())[:: LATEST // 2])
    assert await histories.read(list(wanted)) == wanted


async def test_the_history_that_was_written_last_holds_in_every_stretch() -> None:
    histories = PodHistories(FakeTopics())
    await read(histories, HISTORY_KEY)
    for turn in range(3 * STRETCHES):
        latest = a_history(turn, turn)
        histories.put(HISTORY_KEY, latest, encode(latest).value, turn)
        for number in range(LATEST - 1):
            histories.put(HistoryKey(1, f"other-{number}"), latest, b"{}", number)
        assert await read(histories, HISTORY_KEY) == latest


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_of_a_partition_that_is_read_the_histories_hold_that_hold_one_after_the_other(
    written: list[tuple[int, int, int]],
) -> None:
    reader, expected = PositionsReader(), dict[HistoryKey, PodPosition]()
    for offset, (pod, until, began) in enumerate(written):
        key, position = HistoryKey(1, f"pod-{pod}"), PodPosition(offset, until, began, 5)
        reader.add(key, position)
        before = expected.get(key)
        if before is None or not (until < before.published_until and began <= before.began_us):
            expected[key] = position
    positions = reader.build()
    assert positions.find([HistoryKey(1, f"pod-{pod}") for pod in range(4)]) == expected
    assert len(positions) == len(expected)


async def test_what_a_worker_writes_behind_the_one_that_took_over_does_not_hold() -> None:
    histories = await load_histories(a_history(0, 7), a_history(2, 15), a_history(1, 9))
    assert await read(histories, HISTORY_KEY) == a_history(2, 15)


async def test_a_history_of_a_topic_of_decisions_that_was_made_again_holds() -> None:
    histories = await load_histories(a_history(0, 90), a_history(1, 2))
    assert await read(histories, HISTORY_KEY) == a_history(1, 2)


async def test_a_history_that_cant_be_read_is_as_none() -> None:
    topics = FakeTopics()
    good = encode(a_history(0, 7))
    await topics.send([EncodedRecord(good.key, b"{", good.headers, POD_HISTORIES.name, 1)])
    assert await read(PodHistories(topics), HISTORY_KEY) is None


async def test_histories_are_forgotten_when_the_topic_forgets_them() -> None:
    clock = Clock()
    clock.now = 1_000.0
    histories = PodHistories(FakeTopics(), clock)
    old, new = a_history(0, 7), a_pod_history(scheduler="volcano")
    old_key, new_key = HistoryKey(1, old.key), HistoryKey(1, new.key)
    await read(histories, old_key)
    histories.put(old_key, old, encode(old).value, 0)
    clock.now += POD_HISTORIES.retention.total_seconds() - 1
    histories.put(new_key, new, encode(new).value, 1)
    assert await read(histories, old_key) == old
    clock.now += 2
    histories.put(new_key, new, encode(new).value, 2)
    assert await read(histories, old_key) is None
    assert await read(histories, new_key) == new


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
    loading = asyncio.create_task(read(histories, HISTORY_KEY))
    await reading.wait()
    histories.clear()
    may_continue.set()
    await loading
    assert len(histories) == 0
    assert await read(histories, HISTORY_KEY) == history


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

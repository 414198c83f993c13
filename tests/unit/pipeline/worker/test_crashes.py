"""Crashes and reassigned partitions at any moment: every attempt is published, the same id has the same content, and it
counts once.

Two workers share three partitions. They are killed while anything is being sent, or while partitions move; what was
sent by then stays, and so does what was acknowledged. Everything else is read again.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diagnosis.waiting import derive_wait
from engine.summaries.fold import summarize
from engine.summaries.messages import build_messages
from engine.summaries.trends import derive_contribution
from pipeline.worker.published import WITHOUT_COMPARISON
from runtime.kafka.record import Record, RecordPosition
from schemas.codec.records import EncodedRecord, decode, encode_value
from schemas.events import AttemptEvent, AttemptSummarized, Contribution, PodHistoryChanged
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, MESSAGES, POD_HISTORIES
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common
from tests.support.fakes.topics import PARTITIONS, FakeTopics, Log, list_published, stream
from tests.support.harness.worker_in_memory import Worker
from tests.support.stress import count_examples

REFUSING = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}
OTHERWISE = {"node1": [["CardCordoned"] * 2], "node2": [["CardCordoned"]]}
PLACED = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"]]}


class KilledError(Exception):
    """The worker that was sending is gone."""


class UnreliableTopics:
    """One worker's way to the topics, which may kill it before, in, or after any request."""

    def __init__(self, topics: FakeTopics, chance: random.Random, danger: float) -> None:
        self._topics, self._chance, self._danger = topics, chance, danger

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        await self._pause()
        stored = len(outgoing)
        if dies := self._chance.random() < self._danger:
            stored = self._chance.randint(0, len(outgoing))
        places = await self._topics.send(outgoing[:stored])
        await self._pause()
        if dies:
            raise KilledError
        return places

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
        await self._pause()
        if self._chance.random() < self._danger:
            raise KilledError
        await self._topics.read_all(topic, partitions, take)
        await self._pause()

    async def read_offsets(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Record]:
        await self._pause()
        return await self._topics.read_offsets(topic, partition, offsets)

    async def _pause(self) -> None:
        for _ in range(self._chance.randint(0, 3)):
            await asyncio.sleep(0)


def a_pod(chance: random.Random, name: str, tries: int) -> list[list[AttemptEvent]]:
    """Its attempts, with the binds of those that were placed. A bind may come behind records of the next attempt."""
    attempts = []
    for number in range(tries):
        started = STARTED + timedelta(seconds=20 * number)
        common = build_common(name) | {"started_at": started, "attempt_id": f"{name}-{number}"}
        devices = chance.choice([REFUSING, REFUSING, OTHERWISE, PLACED])
        events = an_attempt(devices, chosen="node1" if devices is PLACED else None, **common)
        ended = started + timedelta(milliseconds=13)
        events[-1] = events[-1].model_copy(update={"ended_at": ended})
        if devices is PLACED and chance.random() < 0.8:
            bound = chance.random() < 0.5
            events.append(a_bind(bound=bound, **common | {"ended_at": ended + timedelta(seconds=1)}))
        attempts.append(events)
    return attempts


def build_logs(chance: random.Random, pods: Sequence[list[list[AttemptEvent]]]) -> list[Log]:
    """Build logs with each pod in one partition, in the order of its attempts but for late binds, between the records
    of other pods.
    """
    logs = [Log(number) for number in range(PARTITIONS)]
    for partition, log in enumerate(logs):
        orders = [_with_late_binds(chance, pod) for pod in pods[partition::PARTITIONS]]
        turns = [order for order in orders for _ in order]
        chance.shuffle(turns)
        places = {id(order): iter(order) for order in orders}
        log.append(*(next(places[id(turn)]) for turn in turns))
    return logs


def _with_late_binds(chance: random.Random, attempts: list[list[AttemptEvent]]) -> list[AttemptEvent]:
    order: list[AttemptEvent] = []
    late: list[AttemptEvent] = []
    for events in attempts:
        records, binds = (events[:-1], events[-1:]) if events[-1].id.endswith("bind") else (events, [])
        order += records
        order += late
        late = binds if chance.random() < 0.3 else []
        order += [] if late else binds
    return order + late


class Group:
    """Two workers that share the partitions, as a consumer group assigns them."""

    def __init__(self, topics: FakeTopics, logs: list[Log], chance: random.Random, danger: float) -> None:
        self._topics, self._logs, self._chance, self._danger = topics, logs, chance, danger
        self._workers: dict[int, tuple[Worker, asyncio.Task[None]]] = {}

    async def work(self) -> None:
        """Work until everything is acknowledged."""
        while any(len(set(log.acknowledged)) < len(log.records) for log in self._logs):
            await self._rebalance()
            records_by_worker = self._assign_records()
            reading = [
                asyncio.create_task(self._read(number, records)) for number, records in records_by_worker.items()
            ]
            await asyncio.gather(*reading)
        await self._stop(self._workers.keys())

    async def _rebalance(self) -> None:
        """Let all give up all partitions, wait for what is under way, and start dead ones again."""
        for worker, task in self._workers.values():
            worker.decisions.forget()
            await _wait_for_either(worker.writer.wait_until_idle(), task)
        await self._stop([number for number, (_, task) in self._workers.items() if self._chance.random() < 0.3])
        for number in range(2):
            if number not in self._workers:
                worker = Worker(UnreliableTopics(self._topics, self._chance, self._danger))
                self._workers[number] = worker, asyncio.create_task(worker.writer.run())

    async def _stop(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            _, task = self._workers.pop(number)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _assign_records(self) -> dict[int, list[Record]]:
        """Assign some of the unread records of the partitions to each worker, from what is committed on."""
        assigned: dict[int, list[list[Record]]] = defaultdict(list)
        for log in self._logs:
            # Records are acknowledged in their order.
            unread = log.records[max(log.acknowledged, default=-1) + 1 :]
            many = len(unread) if self._chance.random() < 0.3 else self._chance.randint(0, len(unread))
            assigned[self._chance.randrange(2)].append(unread[:many])
        return {number: _merge(self._chance, lists) for number, lists in assigned.items()}

    async def _read(self, number: int, records: list[Record]) -> None:
        """Give the records to the worker; then leave it as it is: idle, in the middle of a batch, or dead."""
        worker, writing = self._workers[number]
        await _wait_for_either(worker.decisions.fold(stream(records)), writing)
        if self._chance.random() < 0.7:
            await _wait_for_either(worker.writer.wait_until_drained(), writing)
        if writing.done():
            assert isinstance(writing.exception(), KilledError)
            del self._workers[number]
            worker.decisions.forget()


async def _wait_for_either(step: Coroutine[Any, Any, None], writing: asyncio.Task[None]) -> None:
    """Return at the end of the step, or of the worker."""
    task = asyncio.create_task(step)
    await asyncio.wait([task, writing], return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _merge(chance: random.Random, lists: list[list[Record]]) -> list[Record]:
    """Merge the lists at random into one that keeps the order of each."""
    order = [number for number, records in enumerate(lists) for _ in records]
    chance.shuffle(order)
    sources = [iter(records) for records in lists]
    return [next(sources[number]) for number in order]


def read_contents(topics: FakeTopics) -> dict[str, dict[str, bytes]]:
    """Return by topic and id what was published; an id that was published twice must have had the same content."""
    contents: dict[str, dict[str, bytes]] = defaultdict(dict)
    for entry in topics.sent:
        # Where a summary lies differs between two of its publications, and so does the history.
        if entry.topic != POD_HISTORIES.name:
            name = dict(entry.headers)["ce_id"].decode()
            assert contents[entry.topic].setdefault(name, entry.value) == entry.value, (entry.topic, name)
    return contents


def encode_plain(summary: AttemptSummarized) -> bytes:
    """Encode the summary without what the comparison with the attempt before adds."""
    return encode_value(summary.model_copy(update=WITHOUT_COMPARISON))


def iterate_weights(adds: Contribution) -> Iterator[tuple[str, int]]:
    for dimension, value, nodes in zip(adds.dimension, adds.value, adds.nodes, strict=True):
        yield f"{adds.status} {dimension} {value}", int(nodes)


def count_verdicts(topics: FakeTopics) -> dict[str, int]:
    """Count by dimension, value and status the node verdicts: of every record once, less what it replaces."""
    sums: dict[str, int] = defaultdict(int)
    for event in {event.id: event for event in topics.list_events(ATTEMPT_COUNTS.name)}.values():
        for sign, change in ((1, event.adds), (-1, event.replaces)):
            for name, nodes in iterate_weights(change) if change else ():
                sums[name] += sign * nodes
    return {name: count for name, count in sums.items() if count}


def count_expected(summaries: Iterable[AttemptSummarized]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for summary in summaries:
        wait = None if summary.status == "succeeded" else derive_wait(summary)
        for name, nodes in iterate_weights(derive_contribution(summary, None, wait.code if wait else "")):
            sums[name] += nodes
    return {name: count for name, count in sums.items() if count}


@given(st.integers(0, 2**32))
@settings(max_examples=count_examples(6))
def test_crashes_and_moving_partitions_lose_repeat_and_change_nothing(seed: int) -> None:
    asyncio.run(_run_with_crashes(random.Random(seed)))


async def _run_with_crashes(chance: random.Random) -> None:
    pods = [a_pod(chance, f"pod-{number}", chance.randint(1, 4)) for number in range(5)]
    logs = build_logs(chance, pods)
    undisturbed = FakeTopics()
    await Group(undisturbed, logs, random.Random(1), 0).work()
    for log in logs:
        log.acknowledged.clear()
    topics = FakeTopics()
    await Group(topics, logs, chance, chance.choice([0, 0.1, 0.4])).work()

    contents = read_contents(topics)
    assert contents == read_contents(undisturbed)
    sent = [summarize(events) for attempts in pods for events in attempts]
    assert {name: encode_plain(summary) for name, summary in list_published(topics).items()} == {
        summary.attempt_id: encode_plain(summary) for summary in sent
    }
    assert count_verdicts(topics) == count_expected(sent)
    lines = {event.id: [line.message for line in event.lines] for summary in sent for event in build_messages(summary)}
    assert {
        name: [line["message"] for line in orjson.loads(value)["lines"]]
        for name, value in contents[MESSAGES.name].items()
    } == lines
    await assert_histories(topics, pods)


async def assert_histories(topics: FakeTopics, pods: Sequence[list[list[AttemptEvent]]]) -> None:
    """Assert that the last history of each pod names its latest four attempts, and where the full summaries lie."""
    last: dict[str, PodHistoryChanged] = {}

    def take(record: Record) -> None:
        event = decode(record.value, record.headers)
        assert isinstance(event, PodHistoryChanged)
        last[str(event.pod)] = event

    await topics.read_all(POD_HISTORIES.name, range(PARTITIONS), take)
    assert last.keys() == {str(attempts[0][0].pod) for attempts in pods}
    for attempts in pods:
        history = last[str(attempts[0][0].pod)]
        published = history.attempts
        assert [entry.attempt_id for entry in published] == [events[0].attempt_id for events in reversed(attempts[-4:])]
        for attempt in published:
            (record,) = await topics.read_offsets(ATTEMPTS.name, attempt.whole.partition, attempt.whole.offsets)
            summary = decode(record.value, record.headers)
            assert isinstance(summary, AttemptSummarized)
            assert summary.attempt_id == attempt.whole.attempt_id

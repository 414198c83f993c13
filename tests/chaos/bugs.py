"""Bugs put into the worker on purpose, to see that the ledger finds them. Each breaks one promise of the pipeline.

A bug is made where a hurried engineer would make it, or, where that place moves, where the worker meets Kafka.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from engine.summaries import fold
from engine.summaries.node_table import build_node_table
from pipeline.worker import agent, faust_app
from pipeline.worker.offset_tracker import OffsetTracker
from pipeline.worker.open_attempts import OpenAttempts
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import Record, RecordPosition
from schemas.codec.records import EncodedRecord
from schemas.events import AttemptConcluded, BindConcluded
from schemas.topics import ATTEMPTS, DEAD_LETTERS, DEVICE_VERDICTS, POD_HISTORIES

PER_NODE: Final = ("nodes", "verdict", "score", "refused_by", "refusal")
NOWHERE: Final = RecordPosition(0, 0)


def _acknowledge_before_the_write() -> None:
    original = OffsetTracker.track

    def track(offsets: OffsetTracker[Any], offset: int, acknowledge: Any) -> bool:
        acknowledge()
        return original(offsets, offset, acknowledge)

    setattr(OffsetTracker, "track", track)


def _take_batches() -> None:
    async def read_records(_app: Any, stream: Any) -> AsyncIterator[Record]:
        async for runs in stream.take(20, within=0.1):
            for record in (item for run in runs for item in run):
                arguments = record.topic, record.partition, record.offset, record.key, record.value, record.headers
                yield Record(*arguments, record.timestamp, lambda: None)

    setattr(faust_app, "iterate_records", read_records)


def _lose_conclusions() -> None:
    original = OpenAttempts.add
    seen = count(1)

    def add(attempts: OpenAttempts, event: Any, *arguments: Any) -> Any:
        if isinstance(event, AttemptConcluded) and next(seen) % 10 == 0:
            return None
        return original(attempts, event, *arguments)

    setattr(OpenAttempts, "add", add)


def _forget_binds() -> None:
    original = OpenAttempts.add

    def add(attempts: OpenAttempts, event: Any, *arguments: Any) -> Any:
        return None if isinstance(event, BindConcluded) else original(attempts, event, *arguments)

    setattr(OpenAttempts, "add", add)


def _drop_one_node() -> None:
    table = build_node_table

    def drop_last_node(records: Sequence[Any], tallies: Iterable[Any]) -> Any:
        whole_table = table(records, list(tallies))
        last = slice(None, -1)
        return replace(whole_table, **{name: getattr(whole_table, name)[last] for name in PER_NODE})

    setattr(fold, "build_node_table", drop_last_node)


def _lose_records(is_lost: Callable[[EncodedRecord], bool]) -> None:
    """Send all records but the lost ones, which count as acknowledged."""
    original = TopicsSink.send

    async def send(sink: TopicsSink, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        is_sent = [not is_lost(record) for record in outgoing]
        places = iter(await original(sink, [record for record, sends in zip(outgoing, is_sent, strict=True) if sends]))
        return [next(places) if sends else NOWHERE for sends in is_sent]

    setattr(TopicsSink, "send", send)


def _lose_dead_letters() -> None:
    _lose_records(lambda outgoing: outgoing.topic == DEAD_LETTERS.name)


def _drop_detail() -> None:
    seen = count(1)
    _lose_records(lambda outgoing: outgoing.topic == DEVICE_VERDICTS.name and next(seen) % 10 == 0)


def _repeat_under_another_id() -> None:
    original = TopicsSink.send

    async def send(sink: TopicsSink, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        again = [_rename(record) for record in outgoing if record.topic == ATTEMPTS.name]
        return (await original(sink, [*outgoing, *again]))[: len(outgoing)]

    setattr(TopicsSink, "send", send)


def _rename(record: EncodedRecord) -> EncodedRecord:
    other = uuid.uuid4().hex.encode()
    headers = [(name, other if name == "ce_id" else value) for name, value in record.headers]
    return record._replace(headers=headers)


def _send_history_before_its_attempt() -> None:
    """Hold records back until the history is written, which is faster because nothing has to be waited for twice."""
    original = TopicsSink.send
    held: list[EncodedRecord] = []

    async def send(sink: TopicsSink, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        if any(record.topic == ATTEMPTS.name for record in outgoing):
            held.extend(outgoing)
            return [NOWHERE] * len(outgoing)
        places = await original(sink, outgoing)
        if any(record.topic == POD_HISTORIES.name for record in outgoing):
            late, held[:] = list(held), []
            await original(sink, late)
        return places

    setattr(TopicsSink, "send", send)


def _run_two_agents() -> None:
    """Run ``concurrency=2``, with a state for each: the records of an attempt are divided between them."""
    original = agent.DecisionsAgent._process
    others: dict[int, agent.DecisionsAgent] = {}
    turn = count()

    async def process(decisions: agent.DecisionsAgent, record: Any) -> None:
        other = others.setdefault(id(decisions), agent.DecisionsAgent(decisions._writer, decisions._metrics))
        await original(decisions if next(turn) % 2 else other, record)

    setattr(agent.DecisionsAgent, "_process", process)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "acknowledge before the write": _acknowledge_before_the_write,
    "take": _take_batches,
    "concurrency 2": _run_two_agents,
    "lost conclusions": _lose_conclusions,
    "binds forgotten": _forget_binds,
    "one node short": _drop_one_node,
    "no dead letters": _lose_dead_letters,
    "dropped detail": _drop_detail,
    "a topic record published twice under different ids": _repeat_under_another_id,
    "a history written before its attempt": _send_history_before_its_attempt,
}

"""Bugs put into the worker on purpose, to see that the ledger finds them. Each breaks one promise of the pipeline.

A bug is made where a hurried engineer would make it, or, where that place moves, where the worker meets Kafka.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from engine.summaries import fold
from engine.summaries.node_table import node_table
from pipeline.worker import agent, faust_app
from pipeline.worker.offset_tracker import OffsetTracker
from pipeline.worker.open_attempts import OpenAttempts
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import Outgoing, Place, Record
from schemas.events import AttemptConcluded, BindConcluded
from schemas.topics import ATTEMPTS, DEAD_LETTERS, DEVICE_VERDICTS, POD_HISTORIES

PER_NODE: Final = ("nodes", "verdict", "score", "refused_by", "refusal")
NOWHERE: Final = Place(0, 0)


def _acknowledge_before_the_write() -> None:
    track = OffsetTracker.track

    def tracking(offsets: OffsetTracker[Any], offset: int, acknowledge: Any) -> bool:
        acknowledge()
        return track(offsets, offset, acknowledge)

    setattr(OffsetTracker, "track", tracking)


def _take_batches() -> None:
    async def records(_app: Any, stream: Any) -> AsyncIterator[Record]:
        async for runs in stream.take(20, within=0.1):
            for record in (item for run in runs for item in run):
                about = record.topic, record.partition, record.offset, record.key, record.value, record.headers
                yield Record(*about, record.timestamp, lambda: None)

    setattr(faust_app, "records", records)


def _lost_conclusions() -> None:
    add = OpenAttempts.add
    seen = count(1)

    def adding(attempts: OpenAttempts, event: Any, *about: Any) -> Any:
        if isinstance(event, AttemptConcluded) and next(seen) % 10 == 0:
            return None
        return add(attempts, event, *about)

    setattr(OpenAttempts, "add", adding)


def _binds_forgotten() -> None:
    add = OpenAttempts.add

    def adding(attempts: OpenAttempts, event: Any, *about: Any) -> Any:
        return None if isinstance(event, BindConcluded) else add(attempts, event, *about)

    setattr(OpenAttempts, "add", adding)


def _one_node_short() -> None:
    table = node_table

    def short(records: Sequence[Any], tallies: Iterable[Any]) -> Any:
        made = table(records, list(tallies))
        last = slice(None, -1)
        return replace(made, **{name: getattr(made, name)[last] for name in PER_NODE})

    setattr(fold, "node_table", short)


def _without(is_lost: Callable[[Outgoing], bool]) -> None:
    """Some records are not sent, and count as acknowledged."""
    send = TopicsSink.send

    async def sending(sink: TopicsSink, outgoing: Sequence[Outgoing]) -> Sequence[Place]:
        kept = [not is_lost(record) for record in outgoing]
        places = iter(await send(sink, [record for record, is_kept in zip(outgoing, kept, strict=True) if is_kept]))
        return [next(places) if is_kept else NOWHERE for is_kept in kept]

    setattr(TopicsSink, "send", sending)


def _no_dead_letters() -> None:
    _without(lambda outgoing: outgoing.topic == DEAD_LETTERS.name)


def _dropped_detail() -> None:
    seen = count(1)
    _without(lambda outgoing: outgoing.topic == DEVICE_VERDICTS.name and next(seen) % 10 == 0)


def _repeated_under_another_id() -> None:
    send = TopicsSink.send

    async def sending(sink: TopicsSink, outgoing: Sequence[Outgoing]) -> Sequence[Place]:
        again = [_renamed(record) for record in outgoing if record.topic == ATTEMPTS.name]
        return (await send(sink, [*outgoing, *again]))[: len(outgoing)]

    setattr(TopicsSink, "send", sending)


def _renamed(outgoing: Outgoing) -> Outgoing:
    record = outgoing.record
    other = uuid.uuid4().hex.encode()
    headers = [(name, other if name == "ce_id" else value) for name, value in record.headers]
    return outgoing._replace(record=record._replace(headers=headers))


def _history_before_its_attempt() -> None:
    """The records wait until the history is written, which is faster because nothing has to be waited for twice."""
    send = TopicsSink.send
    held: list[Outgoing] = []

    async def sending(sink: TopicsSink, outgoing: Sequence[Outgoing]) -> Sequence[Place]:
        if any(record.topic == ATTEMPTS.name for record in outgoing):
            held.extend(outgoing)
            return [NOWHERE] * len(outgoing)
        places = await send(sink, outgoing)
        if any(record.topic == POD_HISTORIES.name for record in outgoing):
            late, held[:] = list(held), []
            await send(sink, late)
        return places

    setattr(TopicsSink, "send", sending)


def _two_agents_side_by_side() -> None:
    """``concurrency=2``, with a state for each: the records of an attempt are divided between them."""
    process = agent.DecisionsAgent._process
    others: dict[int, agent.DecisionsAgent] = {}
    turn = count()

    async def processing(decisions: agent.DecisionsAgent, record: Any) -> None:
        other = others.setdefault(id(decisions), agent.DecisionsAgent(decisions._writer, decisions._metrics))
        await process(decisions if next(turn) % 2 else other, record)

    setattr(agent.DecisionsAgent, "_process", processing)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "acknowledge before the write": _acknowledge_before_the_write,
    "take": _take_batches,
    "concurrency 2": _two_agents_side_by_side,
    "lost conclusions": _lost_conclusions,
    "binds forgotten": _binds_forgotten,
    "one node short": _one_node_short,
    "no dead letters": _no_dead_letters,
    "dropped detail": _dropped_detail,
    "a topic record published twice under different ids": _repeated_under_another_id,
    "a history written before its attempt": _history_before_its_attempt,
}

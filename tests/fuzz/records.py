"""Broken Kafka records for the pipeline: each is folded or dead-lettered, and its neighbours are published.

Every piece goes through the agent itself, with topics that only count. After each hundred of them comes a
whole attempt, which has to be published.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as counting
from typing import Any

import orjson

from pipeline.metrics import WorkerMetrics
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.write_queue import WriterPolicy
from pipeline.worker.writer import Writer
from runtime.kafka.record import Record, RecordPosition
from schemas.codec import records
from schemas.codec.records import EncodedRecord
from schemas.events import AttemptEvent, BindConcluded
from schemas.topics import ATTEMPTS, DEAD_LETTERS, DECISIONS
from tests.fuzz.mutate import NAUGHTY, change_bytes, change_value
from tests.support.builders.attempts import STARTED, an_attempt, build_common

PIECES_PER_ATTEMPT = 100


@dataclass
class _Topics:
    """Takes everything, and remembers which attempts were published, and how much was dead-lettered."""

    published: set[str] = field(default_factory=set)
    dead: int = 0

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        for entry in outgoing:
            if entry.topic == DEAD_LETTERS.name:
                self.dead += 1
                # The agent also dead-letters a record on which its own code failed.
                assert not any(b"the fold failed" in value for _, value in entry.headers), entry
            elif entry.topic == ATTEMPTS.name:
                self.published.add(str(orjson.loads(entry.value)["attempt_id"]))
        return [RecordPosition(0, 0)] * len(outgoing)

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
        """Read nothing: the topics are empty."""

    async def read_offsets(self, topic: str, partition: int, offsets: list[int]) -> list[Any]:
        return []


def feed_records(count: int, seed: int) -> Iterator[str]:
    """Feed ``count`` broken records: ``folded`` or ``dead letter``. Raises what the agent raises, or ``AssertionError``
    if a good neighbour was not published."""
    loop = asyncio.new_event_loop()
    try:
        agent = _Agent()
        for number in range(0, count, PIECES_PER_ATTEMPT):
            pieces = min(PIECES_PER_ATTEMPT, count - number)
            try:
                dead = loop.run_until_complete(agent.take(pieces, random.Random(f"{seed}/{number}"), number))
            except Exception as error:
                error.add_note(f"records: seed {seed}, pieces {number} to {number + pieces - 1}")
                raise
            yield from ["dead letter"] * dead + ["folded"] * (pieces - dead)
    finally:
        loop.close()


class _Agent:
    def __init__(self) -> None:
        self._topics, metrics = _Topics(), WorkerMetrics()
        self._writer = Writer(self._topics, self._topics, metrics, WriterPolicy(linger_seconds=0))
        self._decisions = DecisionsAgent(self._writer, metrics)
        self._offsets = counting()

    async def take(self, pieces: int, chance: random.Random, number: int) -> int:
        """Count how many of ``pieces`` broken records become dead letters."""
        valid = [records.encode(event) for event in _an_attempt(number)]
        before = self._topics.dead
        writing = asyncio.create_task(self._writer.run())
        pieces_read = [break_record(chance.choice(valid), chance) for _ in range(pieces)]
        await self._decisions.fold(self._read(pieces_read))
        await self._writer.wait_until_drained()
        dead = self._topics.dead - before
        # What a broken piece added to the attempt is forgotten, as after a rebalance: only the whole one counts.
        self._decisions.forget()
        await self._decisions.fold(self._read(valid))
        await self._writer.wait_until_drained()
        assert self._topics.dead == before + dead
        assert _get_attempt_id(valid) in self._topics.published
        self._topics.published.clear()
        self._decisions.forget()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        return dead

    async def _read(self, pieces: Sequence[records.EncodedRecord]) -> AsyncIterator[Record]:
        for record in pieces:
            offset = next(self._offsets)
            yield Record(DECISIONS.name, 0, offset, record.key, record.value, record.headers, 0, _acknowledge)


def _acknowledge() -> None:
    """Ignore that a record is acknowledged."""


def _get_attempt_id(attempt: Sequence[records.EncodedRecord]) -> str:
    return str(orjson.loads(attempt[0].value)["attempt_id"])


def break_record(record: records.EncodedRecord, chance: random.Random) -> records.EncodedRecord:
    """Change something in the record: its bytes, its JSON, or its headers."""
    way = chance.random()
    if way < 0.45:
        return record._replace(value=change_bytes(record.value, chance))
    if way < 0.9:
        changed = change_value(orjson.loads(record.value), chance)
        return record._replace(value=_encode_json(changed))
    return record._replace(headers=_change_headers(record.headers, chance))


def _encode_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")  # orjson refuses numbers above 64 bits


def _change_headers(headers: Sequence[tuple[str, bytes]], chance: random.Random) -> list[tuple[str, bytes]]:
    changed = list(headers)
    position = chance.randrange(len(changed))
    name, value = changed[position]
    changed[position : position + 1] = chance.choice(
        [
            [],
            [(name, change_bytes(value, chance))],
            [(chance.choice(NAUGHTY)[:40], value)],
            [(name, value), (name, b"io.schedulerlog.bind.concluded.v1")],
            [(name, chance.choice(NAUGHTY).encode())],
        ]
    )
    return changed


def _an_attempt(number: int) -> list[AttemptEvent]:
    """A pod of its own for every number, so that no attempt is a retry of another."""
    devices = {
        "node1": [["picked", "fits"], ["not reached", "picked"]],
        "node2": [["CardInsufficientMemory", "CardInsufficientCore"]],
        "node3": [["picked", "CardNotHealth"], ["CardTypeMismatch", "CardUuidMismatch"]],
        "node4": [["NumaNotFit", "CardTimeSlicingExhausted"]],
    }
    common = build_common(f"pod-{number}")
    bound = BindConcluded(**common, node="node1", bound=True, bind_started_at=STARTED, ended_at=STARTED)
    return [*an_attempt(devices, chosen="node1", unregistered=["node5"], **common), bound]

"""A source through a reader into Kafka or an explanation, with a checkpoint behind what Kafka has taken."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ingest.checkpoint import Checkpoint, CheckpointState
from ingest.lines.blocks import Lines
from ingest.metrics import Metrics
from ingest.protocol import LogReader
from ingest.sources.follow import Reached
from schemas.events import Event

MAX_BATCH: Final = 500
"""Events that are handed to Kafka at once, so that a long block does not fill the memory."""
CHECKPOINT_SECONDS: Final = 2.0
REST_FOR_SAVING: Final = 20.0
"""A reader that remembers much is saved less often: between two checkpoints lies this many times what one takes."""


class Sink(Protocol):
    async def send(self, events: Sequence[Event]) -> None:
        """Return when they can't be lost any more."""
        ...


@dataclass(frozen=True, slots=True)
class LinesRead:
    """Lines, and where to go on behind them."""

    lines: Lines
    reached: Reached
    since: str = ""


async def run(
    found: AsyncIterator[LinesRead],
    reader: LogReader,
    sink: Sink,
    metrics: Metrics,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Read to the end of the source. What was begun and not ended is told at the end, not before a restart.

    With a checkpoint the end of the source is not the end of the log: then nothing is closed, only remembered.
    """
    loop = asyncio.get_running_loop()
    save_at = loop.time()
    latest: LinesRead | None = None
    async for each in found:
        await _send(sink, reader, each.lines)
        # A sink that never waits would keep the loop from hearing of SIGINT.
        await asyncio.sleep(0)
        metrics.note(reader.counts)
        latest = each
        if checkpoint and (begun := loop.time()) >= save_at:
            checkpoint.save(CheckpointState(each.reached, each.since, reader.save()))
            save_at = loop.time() + max(CHECKPOINT_SECONDS, REST_FOR_SAVING * (loop.time() - begun))
    if checkpoint and latest:
        checkpoint.save(CheckpointState(latest.reached, latest.since, reader.save()))
    if not checkpoint:
        await sink.send(list(reader.close()))
    metrics.note(reader.counts)


async def _send(sink: Sink, reader: LogReader, lines: Lines) -> None:
    batch: list[Event] = []
    for event in reader.feed(lines):
        batch.append(event)
        if len(batch) >= MAX_BATCH:
            await sink.send(batch)
            batch = []
    if batch:
        await sink.send(batch)

"""Moves lines from a source through a reader to a sink, and saves a checkpoint of what the sink has taken."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from ingest.lines.blocks import Lines
from ingest.reading.checkpoint import Checkpoint, CheckpointState
from ingest.reading.protocol import Counts, LogReader, Sink
from ingest.sources.follow import Reached
from schemas.events import Event

MAX_BATCH: Final = 500
"""Events that are sent at once: a long block of lines must not fill the memory with events."""
CHECKPOINT_SECONDS: Final = 2.0
MIN_PAUSES_PER_SAVE: Final = 20.0
"""Between two checkpoints passes at least so many times what saving takes: a large state is saved less often."""


@dataclass(frozen=True, slots=True)
class LinesRead:
    """Lines, and the place where reading continues after them."""

    lines: Lines
    reached: Reached
    since: str = ""
    """The place in a log that is known by times: see ``CheckpointState``."""


async def run(
    source: AsyncIterator[LinesRead],
    reader: LogReader,
    sink: Sink,
    note: Callable[[Counts], None] = lambda _: None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Read to the end of the source; ``note`` is given the reader's counts now and then.

    Without a checkpoint the end of the source is the end of the log: attempts that are still open are sent. With one
    they are saved, and continue in the next run.
    """
    loop = asyncio.get_running_loop()
    save_at = loop.time()
    latest: LinesRead | None = None
    async for read in source:
        await _send(sink, reader, read.lines)
        # A sink that never waits would keep the event loop from handling SIGINT.
        await asyncio.sleep(0)
        note(reader.counts)
        latest = read
        if checkpoint and (begun := loop.time()) >= save_at:
            checkpoint.save(CheckpointState(read.reached, read.since, reader.save()))
            save_at = loop.time() + max(CHECKPOINT_SECONDS, MIN_PAUSES_PER_SAVE * (loop.time() - begun))
    if checkpoint and latest:
        checkpoint.save(CheckpointState(latest.reached, latest.since, reader.save()))
    if not checkpoint:
        await sink.send(list(reader.close()))
    note(reader.counts)


async def _send(sink: Sink, reader: LogReader, lines: Lines) -> None:
    batch: list[Event] = []
    for event in reader.feed(lines):
        batch.append(event)
        if len(batch) >= MAX_BATCH:
            await sink.send(batch)
            batch = []
    if batch:
        await sink.send(batch)

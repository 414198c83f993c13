"""Reads the log of any known scheduler to its end: the scheduler is recognised by its first lines."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingest.errors import MistakeError
from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing
from ingest.protocol import Sink
from ingest.pump import LinesRead, run
from ingest.readers import LOG_SOURCES, LogSource, source_of
from ingest.sources.follow import STANDARD_INPUT, Reached, read_file, read_standard_input
from process.cluster_name import DEFAULT_CLUSTER

MAX_UNDECIDED_BLOCKS: Final = 64
"""Blocks without a line that a scheduler is known by; a log begins with little else."""


def read_log(file: Path, sink: Sink) -> None:
    """Send the events of the log in a file; ``-`` is standard input.

    Raises ``MistakeError`` where no known scheduler wrote it, and ``UnreadableFileError``: what was before the
    unreadable part has been sent then.
    """
    # Readers make no reference cycles, and the collector would take a seventh of the time.
    gc.set_threshold(200_000, 50, 100)
    asyncio.run(_read(str(file), _of_file(file), sink))


def read_log_text(text: str, sink: Sink) -> None:
    """The same of a text. Raises ``MistakeError``."""
    asyncio.run(_read("the text", _of_text(text), sink))


async def _read(name: str, blocks: AsyncIterator[Lines], sink: Sink) -> None:
    first: list[Lines] = []
    source: LogSource | None = None
    async for lines in blocks:
        first.append(lines)
        source = next(filter(None, map(source_of, lines.texts)), None)
        if source or len(first) >= MAX_UNDECIDED_BLOCKS:
            break
    if source is None:
        known = ", ".join(each.name.removesuffix("-log") for each in LOG_SOURCES)
        raise MistakeError(
            f"{name}: no line is from a scheduler that is known ({known}). "
            "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"
        )
    await run(_joined(first, blocks), source.create(DEFAULT_CLUSTER), sink)


async def _joined(first: Iterable[Lines], rest: AsyncIterator[Lines]) -> AsyncIterator[LinesRead]:
    for lines in first:
        yield LinesRead(lines, Reached(lines.end))
    async for lines in rest:
        yield LinesRead(lines, Reached(lines.end))


async def _of_file(path: Path) -> AsyncIterator[Lines]:
    if str(path) == STANDARD_INPUT:
        async for lines in read_standard_input():
            yield lines
        return
    for lines, _, _ in read_file(path, Reached()):
        yield lines


async def _of_text(text: str) -> AsyncIterator[Lines]:
    framing = Framing(Origin("text", datetime.now(UTC)))
    for lines in (framing.feed(text.encode("utf-8", "replace")), framing.close()):
        if lines:
            yield lines

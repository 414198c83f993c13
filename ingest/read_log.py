"""Reads the log of any known scheduler to its end: the scheduler is recognised by its first lines."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Final

from ingest.errors import MistakeError
from ingest.lines.blocks import Lines
from ingest.protocol import LogReader, Sink
from ingest.pump import LinesRead, run
from ingest.readers import LOG_SOURCES, LogSource, source_of
from ingest.sources.follow import STANDARD_INPUT, Reached, read_file, read_standard_input
from process.cluster_name import DEFAULT_CLUSTER

MAX_UNDECIDED_BLOCKS: Final = 64
"""Blocks without a line that a scheduler is known by; a log begins with little else."""


def read_log(files: Iterable[Path], sink: Sink) -> LogReader:
    """Send the events of these files, oldest first; ``-`` is standard input. Returns the reader with its counts.

    Raises ``MistakeError`` where no known scheduler wrote them, and ``UnreadableFileError``: what was before the
    unreadable part has been sent then.
    """
    # Readers make no reference cycles, and the collector would take a seventh of the time.
    gc.set_threshold(200_000, 50, 100)
    return asyncio.run(_read(list(files), sink))


async def _read(files: list[Path], sink: Sink) -> LogReader:
    blocks = _blocks(files)
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
            f"{', '.join(map(str, files))}: no line is from a scheduler that is known ({known}). "
            "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"
        )
    reader = source.create(DEFAULT_CLUSTER)
    await run(_joined(first, blocks), reader, sink)
    return reader


async def _joined(first: list[Lines], rest: AsyncIterator[Lines]) -> AsyncIterator[LinesRead]:
    for lines in first:
        yield LinesRead(lines, Reached(lines.end))
    async for lines in rest:
        yield LinesRead(lines, Reached(lines.end))


async def _blocks(files: list[Path]) -> AsyncIterator[Lines]:
    for path in files:
        if str(path) == STANDARD_INPUT:
            async for lines in read_standard_input():
                yield lines
        else:
            for lines in _of_file(path):
                yield lines


def _of_file(path: Path) -> Iterator[Lines]:
    return (lines for lines, _, _ in read_file(path, Reached()))

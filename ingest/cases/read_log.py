"""Reads the log of any known scheduler to its end: the scheduler is recognised by its first lines."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from ingest.errors import MistakeError
from ingest.lines.blocks import Lines, Origin
from ingest.lines.copies import restore_order
from ingest.lines.framing import Framing
from ingest.readers.registry import LOG_SOURCES, NO_FACTS, LogFacts, LogSource, find_source
from ingest.reading.protocol import Counts, collect_garbage_seldom
from ingest.sources.follow import STANDARD_INPUT, Reached, read_file
from ingest.sources.pieces import BLOCK_BYTES, HEAD_BYTES, UnreadableFileError, is_packed
from runtime.settings.names import DEFAULT_CLUSTER
from schemas.events import Event

NAME_OF_STANDARD_INPUT: Final = "standard input"
MAX_UNDECIDED_BLOCKS: Final = 64
"""Blocks that are read to recognise the scheduler: a log has lines that show it near its beginning."""


def read_log(
    file: Path, take: Callable[[Iterable[Event]], None], facts: LogFacts = NO_FACTS, *, head: bytes = b""
) -> Counts:
    """Give ``take`` the events of the log in a file, and count its lines; ``-`` is standard input.

    ``head``: what was read of standard input already.

    Raises ``MistakeError`` for a log of an unknown scheduler, and ``UnreadableFileError``: ``take`` then has the events
    before the unreadable part.
    """
    collect_garbage_seldom()
    if str(file) == STANDARD_INPUT:
        return _read(NAME_OF_STANDARD_INPUT, _read_standard_input(head), take, facts)
    if file.is_dir():
        raise MistakeError(f"{file} is a directory: name a log in it, or an archive of it (tar)")
    return _read(str(file), _read_file(file), take, facts)


def read_log_text(text: str, take: Callable[[Iterable[Event]], None]) -> None:
    """Give ``take`` the events of a log's text. Raises ``MistakeError`` for a log of an unknown scheduler."""
    _read("the text", _split_text(text), take, NO_FACTS)


def _read(name: str, blocks: Iterator[Lines], take: Callable[[Iterable[Event]], None], facts: LogFacts) -> Counts:
    blocks = restore_order(blocks)
    first: list[Lines] = []
    source: LogSource | None = None
    for lines in blocks:
        first.append(lines)
        source = next(filter(None, map(find_source, lines.texts)), None)
        if source or len(first) >= MAX_UNDECIDED_BLOCKS:
            break
    if not any(lines.texts for lines in first):
        hint = ": the command before the pipe wrote nothing" if name == NAME_OF_STANDARD_INPUT else ""
        raise MistakeError(f"{name} is empty{hint}")
    if source is None:
        schedulers = ", ".join(log_source.name.removesuffix("-log") for log_source in LOG_SOURCES)
        raise MistakeError(
            f"{name}: no line is from a scheduler that is known ({schedulers}). "
            "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"
        )
    # Without an event loop: nothing else is waited for, and importing one takes as long as reading a small log.
    try:
        reader = source.create(DEFAULT_CLUSTER, facts)
    except ValueError as error:
        raise MistakeError(f"--nodes: {error}") from None
    for lines in chain(first, blocks):
        take(reader.feed(lines))
    take(reader.close())
    return reader.counts


def _read_file(path: Path) -> Iterator[Lines]:
    for lines, _, _ in read_file(path, Reached()):
        yield lines


def _read_standard_input(head: bytes) -> Iterator[Lines]:
    head = head or read_standard_input(HEAD_BYTES)
    if is_packed(head):
        yield from _unpack(head)
        return
    framing = Framing(Origin(STANDARD_INPUT))
    for data in chain([head] if head else [], iter(_read_bytes, b"")):
        framing.origin = Origin(STANDARD_INPUT, datetime.now(UTC))
        if lines := framing.feed(data):
            yield lines
    if lines := framing.close():
        yield lines


def _unpack(head: bytes) -> Iterator[Lines]:
    """Unpack standard input by way of a file: the kind of an archive shows only after a part of it was unpacked."""
    # Imported late: plain text needs no file, and the import takes its time.
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        for data in chain([head], iter(_read_bytes, b"")):
            file.write(data)
        file.flush()
        try:
            yield from _read_file(Path(file.name))
        except UnreadableFileError as error:
            raise UnreadableFileError(str(error).replace(file.name, NAME_OF_STANDARD_INPUT)) from None


def read_standard_input(size: int) -> bytes:
    """Read at least that many bytes, fewer only at the end of the input: a pipe may pass them one by one."""
    parts: list[bytes] = []
    while size > 0 and (data := _read_bytes()):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _read_bytes() -> bytes:
    return os.read(sys.stdin.fileno(), BLOCK_BYTES)


def _split_text(text: str) -> Iterator[Lines]:
    framing = Framing(Origin("text", datetime.now(UTC)))
    for lines in (framing.feed(text.encode("utf-8", "replace")), framing.close()):
        if lines:
            yield lines

"""Reads the log of any known scheduler to its end: the scheduler is recognised by its first lines."""

import gc
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from ingest.errors import MistakeError
from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing
from ingest.log_answers.log_pods import LogPods
from ingest.readers.registry import LOG_SOURCES, LogSource, source_of
from ingest.sources.follow import STANDARD_INPUT, Reached, read_file
from ingest.sources.formats import HEAD_BYTES, is_packed
from ingest.sources.pieces import BLOCK_BYTES, UnreadableFileError
from runtime.settings.cluster_name import DEFAULT_CLUSTER

NAME_OF_STANDARD_INPUT: Final = "standard input"
MAX_UNDECIDED_BLOCKS: Final = 64
"""Blocks without a line that a scheduler is known by; a log begins with little else."""


def read_log(file: Path, pods: LogPods) -> None:
    """Add the events of the log in a file; ``-`` is standard input.

    Raises ``MistakeError`` where no known scheduler wrote it, and ``UnreadableFileError``: what was before the
    unreadable part has been added then.
    """
    # Readers make no reference cycles, and the collector would take a seventh of the time.
    gc.set_threshold(200_000, 50, 100)
    if str(file) == STANDARD_INPUT:
        _read(NAME_OF_STANDARD_INPUT, _of_standard_input(), pods)
    elif file.is_dir():
        raise MistakeError(f"{file} is a directory: name a log in it, or an archive of it (tar)")
    else:
        _read(str(file), _of_file(file), pods)


def read_log_text(text: str, pods: LogPods) -> None:
    """The same of a text. Raises ``MistakeError``."""
    _read("the text", _of_text(text), pods)


def _read(name: str, blocks: Iterator[Lines], pods: LogPods) -> None:
    first: list[Lines] = []
    source: LogSource | None = None
    for lines in blocks:
        first.append(lines)
        source = next(filter(None, map(source_of, lines.texts)), None)
        if source or len(first) >= MAX_UNDECIDED_BLOCKS:
            break
    if not any(lines.texts for lines in first):
        hint = ": the command before the pipe wrote nothing" if name == NAME_OF_STANDARD_INPUT else ""
        raise MistakeError(f"{name} is empty{hint}")
    if source is None:
        known = ", ".join(log_source.name.removesuffix("-log") for log_source in LOG_SOURCES)
        raise MistakeError(
            f"{name}: no line is from a scheduler that is known ({known}). "
            "Is it the log of the container vgpu-scheduler-extender, or of KAI's scheduler?"
        )
    # Without an event loop: nothing else is waited for, and importing one takes as long as reading a small log.
    reader = source.create(DEFAULT_CLUSTER)
    for lines in chain(first, blocks):
        pods.add(reader.feed(lines))
    pods.add(reader.close())


def _of_file(path: Path) -> Iterator[Lines]:
    for lines, _, _ in read_file(path, Reached()):
        yield lines


def _of_standard_input() -> Iterator[Lines]:
    head = _first_bytes()
    if is_packed(head):
        yield from _packed(head)
        return
    framing = Framing(Origin(STANDARD_INPUT))
    for data in chain([head] if head else [], iter(_more_bytes, b"")):
        framing.origin = Origin(STANDARD_INPUT, datetime.now(UTC))
        if lines := framing.feed(data):
            yield lines
    if lines := framing.close():
        yield lines


def _packed(head: bytes) -> Iterator[Lines]:
    """By way of a file: an archive's kind is known only after some of it was unpacked."""
    # Plain text needs none, and it takes its time to import.
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        for data in chain([head], iter(_more_bytes, b"")):
            file.write(data)
        file.flush()
        try:
            yield from _of_file(Path(file.name))
        except UnreadableFileError as error:
            raise UnreadableFileError(str(error).replace(file.name, NAME_OF_STANDARD_INPUT)) from None


def _first_bytes() -> bytes:
    """As many as tell what is packed; fewer only of a shorter input: a pipe may pass them one by one."""
    head = b""
    while len(head) < HEAD_BYTES and (data := _more_bytes()):
        head += data
    return head


def _more_bytes() -> bytes:
    return os.read(sys.stdin.fileno(), BLOCK_BYTES)


def _of_text(text: str) -> Iterator[Lines]:
    framing = Framing(Origin("text", datetime.now(UTC)))
    for lines in (framing.feed(text.encode("utf-8", "replace")), framing.close()):
        if lines:
            yield lines

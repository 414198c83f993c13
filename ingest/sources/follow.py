"""A file that grows, is renamed away (rotation) or is emptied (truncation), and standard input.

A rotated file is known again by how it begins, not by its name or inode: after a restart the rest of it is read first,
from whatever it is called by then, packed or not.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from ingest.lines.blocks import Lines, Origin, Place
from ingest.lines.framing import Framing
from ingest.sources.blocks import BLOCK_BYTES, UnreadableFileError, read_blocks

BEGINNING_BYTES: Final = 1024
POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a log has been read, and by what it is known again."""

    place: Place = field(default_factory=Place)
    beginning: str = ""
    """Digest of the first bytes of the file; with how many of them it was made in front."""


def beginning_of(head: bytes) -> str:
    head = head[:BEGINNING_BYTES]
    return f"{len(head)}:{blake2b(head, digest_size=16).hexdigest()}" if head else ""


def begins_so(head: bytes, beginning: str) -> bool:
    """Is this the file that ``beginning`` was made of? It may have grown since."""
    size = int(beginning.partition(":")[0] or 0)
    return bool(size) and len(head) >= size and beginning_of(head[:size]) == beginning


async def follow(
    path: Path, reached: Reached, *, poll_seconds: float = POLL_SECONDS
) -> AsyncIterator[tuple[Lines, Reached]]:
    """The lines of a file, for ever. A file that is not there yet is waited for."""
    for rotated, start in _missed(path, reached):
        for lines, behind, _ in read_file(rotated, start):
            yield lines, behind
    place = reached.place if _is_same(path, reached) else Place()
    while True:
        file = await _opened(path, poll_seconds)
        try:
            async for found in _one_file(path, file, place, poll_seconds):
                yield found
        finally:
            file.close()
        place = Place()


async def _opened(path: Path, poll_seconds: float) -> IO[bytes]:
    while True:
        try:
            return path.open("rb")
        except FileNotFoundError:
            await asyncio.sleep(poll_seconds)
        except OSError as error:
            raise UnreadableFileError(f"{path}: {error.strerror}") from None


async def _one_file(
    path: Path, file: IO[bytes], place: Place, poll_seconds: float
) -> AsyncIterator[tuple[Lines, Reached]]:
    """Until another file stands at the path, or this one was emptied; then what it has left is read first."""
    head = file.read(BEGINNING_BYTES)
    framing = Framing(Origin(str(path), datetime.now(UTC)), place)
    file.seek(place.offset)
    is_left = False
    while True:
        beginning = os.pread(file.fileno(), BEGINNING_BYTES, 0)
        if not beginning.startswith(head):
            return  # emptied and written again: what was not read is gone
        head = beginning
        data = file.read(BLOCK_BYTES)
        if data:
            framing.origin = Origin(str(path), datetime.now(UTC))
            if lines := framing.feed(data):
                yield lines, Reached(lines.end, beginning_of(head))
            continue
        if is_left:
            if lines := framing.close():
                yield lines, Reached(lines.end, beginning_of(head))
            return
        is_left = _stands_elsewhere(path, file)
        if not is_left:
            await asyncio.sleep(poll_seconds)


def _stands_elsewhere(path: Path, file: IO[bytes]) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False  # renamed, and the new one is not there yet: the writer may still have this one open
    was = os.fstat(file.fileno())
    return (now.st_dev, now.st_ino) != (was.st_dev, was.st_ino)


def _is_same(path: Path, reached: Reached) -> bool:
    try:
        with path.open("rb") as file:
            is_known = begins_so(file.read(BEGINNING_BYTES), reached.beginning)
        return is_known and path.stat().st_size >= reached.place.offset
    except OSError:
        return False


def _missed(path: Path, reached: Reached) -> Iterator[tuple[Path, Reached]]:
    """Files that were rotated away since ``reached``: the rest of the one that was being read, and all younger ones."""
    if not reached.beginning or _is_same(path, reached):
        return
    siblings = [each for each in path.parent.glob(path.name + "*") if each != path and each.is_file()]
    siblings.sort(key=lambda each: each.stat().st_mtime)
    known = [place for place, each in enumerate(siblings) if begins_so(_head(each), reached.beginning)]
    for place in range(known[-1], len(siblings)) if known else ():
        yield siblings[place], reached if place == known[-1] else Reached()


def _head(path: Path) -> bytes:
    try:
        return next((block.data for block in read_blocks(path)), b"")
    except UnreadableFileError:
        return b""


def read_file(path: Path, reached: Reached) -> Iterator[tuple[Lines, Reached, int]]:
    """The lines of a file from where it was left to its end, and how many bytes of the file were read until then.

    The place of a file that begins otherwise than it did is of no use: it is read from its start. Raises
    ``UnreadableError``.
    """
    head = _head(path)
    place = reached.place if begins_so(head, reached.beginning) else Place()
    framing: Framing | None = None
    for block in read_blocks(path, place.offset):
        if framing is None or framing.origin != block.origin:
            framing = Framing(block.origin, place if framing is None else Place())
        lines = framing.close() if block.is_last else framing.feed(block.data)
        if lines:
            yield lines, Reached(lines.end, beginning_of(head)), block.packed_bytes


async def read_standard_input() -> AsyncIterator[Lines]:
    """Until its end. The read waits in a thread of its own, so that the rest goes on meanwhile."""
    framing = Framing(Origin("-"))
    while data := await asyncio.to_thread(os.read, sys.stdin.fileno(), BLOCK_BYTES):
        framing.origin = Origin("-", datetime.now(UTC))
        if lines := framing.feed(data):
            yield lines
    if lines := framing.close():
        yield lines

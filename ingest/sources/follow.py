"""Reads files, follows a file that grows, is renamed (rotation) or emptied (truncation), and reads standard input.

A rotated file is recognised by its first bytes, not by its name or inode: after a restart its rest is read first, under
whatever name it has by then, packed or not.
"""

import glob
import os
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final, NamedTuple

from ingest.lines.blocks import Lines, LogPosition, Origin
from ingest.lines.framing import Framing
from ingest.sources.pieces import (
    BLOCK_BYTES,
    HEAD_BYTES,
    Block,
    UnreadableFileError,
    estimate_change,
    is_packed,
    read_pieces,
)

STANDARD_INPUT: Final = "-"
"""Stands for standard input in place of a path."""
BEGINNING_BYTES: Final = 1024
POLL_SECONDS: Final = 0.5


class Reached(NamedTuple):
    """The position in a log, and the beginning by which its file is recognised."""

    position: LogPosition = LogPosition()
    beginning: str = ""
    """``SIZE:DIGEST`` of the first bytes of the file."""


def digest_beginning(head: bytes) -> str:
    head = head[:BEGINNING_BYTES]
    return f"{len(head)}:{blake2b(head, digest_size=16).hexdigest()}" if head else ""


def has_beginning(head: bytes, beginning: str) -> bool:
    """Tell whether these are the first bytes of the file from which ``beginning`` was computed; it may have grown."""
    size = int(beginning.partition(":")[0] or 0)
    return bool(size) and len(head) >= size and digest_beginning(head[:size]) == beginning


async def follow(
    path: Path, reached: Reached, *, poll_seconds: float = POLL_SECONDS
) -> AsyncIterator[tuple[Lines, Reached]]:
    """Follow the lines of a file without an end. Waits for a file that does not exist yet."""
    for rotated, start in _find_rotated(path, reached):
        for lines, reached_there, _ in read_file(rotated, start):
            yield lines, reached_there
    position = reached.position if _is_same(path, reached) else LogPosition()
    while True:
        file = await _wait_and_open(path, poll_seconds)
        try:
            async for read in _follow_file(path, file, position, poll_seconds):
                yield read
        finally:
            file.close()
        position = LogPosition()


async def _wait_and_open(path: Path, poll_seconds: float) -> IO[bytes]:
    from asyncio import sleep

    while True:
        try:
            return path.open("rb")
        except FileNotFoundError:
            await sleep(poll_seconds)
        except OSError as error:
            raise UnreadableFileError(f"{path}: {error.strerror}") from None


async def _follow_file(
    path: Path, file: IO[bytes], position: LogPosition, poll_seconds: float
) -> AsyncIterator[tuple[Lines, Reached]]:
    """Follow an open file until it is truncated, or until another file has its path and this one is read to its end."""
    # Only following needs an event loop: who reads a file once does not import it.
    from asyncio import sleep

    head = file.read(BEGINNING_BYTES)
    framing = Framing(Origin(str(path), datetime.now(UTC)), position)
    file.seek(position.offset)
    is_rotated = False
    while True:
        # A file that was truncated and written again has the same inode, but other first bytes.
        beginning = os.pread(file.fileno(), BEGINNING_BYTES, 0)
        if not beginning.startswith(head):
            return  # truncated and written again: what was not read is lost
        head = beginning
        data = file.read(BLOCK_BYTES)
        if data:
            framing.origin = Origin(str(path), datetime.now(UTC))
            if lines := framing.feed(data):
                yield lines, Reached(lines.end, digest_beginning(head))
            continue
        if is_rotated:
            if lines := framing.close():
                yield lines, Reached(lines.end, digest_beginning(head))
            return
        # Checked only at the end of the file: the writer may still append after the rename.
        is_rotated = _is_renamed(path, file)
        if not is_rotated:
            await sleep(poll_seconds)


def _is_renamed(path: Path, file: IO[bytes]) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False  # renamed, but the new file does not exist yet: the writer may still have this one open
    was = os.fstat(file.fileno())
    return (now.st_dev, now.st_ino) != (was.st_dev, was.st_ino)


def _is_same(path: Path, reached: Reached) -> bool:
    try:
        with path.open("rb") as file:
            is_known = has_beginning(file.read(BEGINNING_BYTES), reached.beginning)
        return is_known and path.stat().st_size >= reached.position.offset
    except OSError:
        return False


def _find_rotated(path: Path, reached: Reached) -> Iterator[tuple[Path, Reached]]:
    """Find the files that were rotated since ``reached``: the one that was being read, and all later ones."""
    if not reached.beginning or _is_same(path, reached):
        return
    siblings = [file for file in path.parent.glob(glob.escape(path.name) + "*") if file != path and file.is_file()]
    siblings.sort(key=lambda file: file.stat().st_mtime)
    # By first bytes: logrotate names files by number or date, and may have packed them.
    matches = [index for index, file in enumerate(siblings) if has_beginning(_head(file), reached.beginning)]
    for index in range(matches[-1], len(siblings)) if matches else ():
        yield siblings[index], reached if index == matches[-1] else Reached()


def _head(path: Path) -> bytes:
    try:
        return next((block.data for block in read_blocks(path)), b"")
    except UnreadableFileError:
        return b""


def read_blocks(path: Path, offset: int = 0) -> Iterator[Block]:
    """Read the logs in a file, piece by piece: one, or those of an archive's members.

    Skips ``offset`` unpacked bytes of the first log. Raises ``UnreadableFileError``.
    """
    try:
        with path.open("rb") as file:
            changed = estimate_change(path.stat().st_mtime, datetime.now(UTC))
            is_plain = not is_packed(file.read(HEAD_BYTES))
            file.seek(0)
            if is_plain:
                yield from read_pieces(Origin(str(path), changed), file, file.tell, offset)
                return
            # A plain log needs none of what unpacks, which takes its time to import.
            from ingest.sources.packed import read_packed_blocks

            yield from read_packed_blocks(path, file, changed, offset)
    except OSError as error:
        raise UnreadableFileError(f"{path}: {error.strerror or error}") from None


def read_file(path: Path, reached: Reached) -> Iterator[tuple[Lines, Reached, int]]:
    """Read the lines of a file from ``reached`` to its end, with the number of its bytes read so far.

    A file that begins differently is another file: it is read from its start. Raises ``UnreadableFileError``.
    """
    head = _head(path)
    position = reached.position if has_beginning(head, reached.beginning) else LogPosition()
    framing: Framing | None = None
    for block in read_blocks(path, position.offset):
        if framing is None or framing.origin != block.origin:
            framing = Framing(block.origin, position if framing is None else LogPosition())
        lines = framing.close() if block.is_last else framing.feed(block.data)
        if lines:
            yield lines, Reached(lines.end, digest_beginning(head)), block.packed_bytes


async def read_standard_input() -> AsyncIterator[Lines]:
    """Read the lines of standard input, in a thread, so that waiting for input does not block the event loop."""
    from asyncio import to_thread

    framing = Framing(Origin("-"))
    while data := await to_thread(os.read, sys.stdin.fileno(), BLOCK_BYTES):
        framing.origin = Origin("-", datetime.now(UTC))
        if lines := framing.feed(data):
            yield lines
    if lines := framing.close():
        yield lines

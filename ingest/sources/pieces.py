"""The pieces of one log, and the first bytes by which a packed file is recognised.

By its bytes and not by its name: rotated logs are called ``.log.1`` or ``.gz``, whether packed or not.
"""

import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import IO, Final, NamedTuple, cast

from ingest.errors import ReadingError
from ingest.lines.blocks import Origin

BLOCK_BYTES: Final = 256 * 1024

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
XZ: Final = b"\xfd7zXZ\x00"
BZIP2: Final = b"BZh"
TAR_MAGIC: Final = slice(257, 262)
HEAD_BYTES: Final = 512
"""Number of first bytes that tell whether a file is packed."""

_FIRST_KUBERNETES: Final = datetime(2014, 6, 1, tzinfo=UTC)
"""No log of a scheduler is older."""


class UnreadableFileError(ReadingError):
    """A file can't be read, or not to its end; the text names the file and the cause."""


class Block(NamedTuple):
    """A piece of one log."""

    origin: Origin
    data: bytes
    packed_bytes: int
    """Number of bytes of the packed file read so far, for a progress bar."""
    is_last: bool = False
    """True for the block after the last piece of a log, which has no data."""


def is_packed(head: bytes) -> bool:
    """Tell from the first ``HEAD_BYTES`` of a file whether it is packed."""
    return head.startswith((GZIP, ZSTD, XZ, BZIP2)) or head[TAR_MAGIC] == b"ustar"


def estimate_change(seconds: float, otherwise: datetime) -> datetime:
    """Estimate a log's last change from seconds since 1970; ``otherwise`` if no log can be that old.

    Archives that are the same whenever they are made date their members 1970 or 1980: klog's lines, which have no
    year, would be from before that.
    """
    changed = datetime.fromtimestamp(max(seconds, 0), UTC)
    return changed if changed >= _FIRST_KUBERNETES else otherwise


def read_pieces(origin: Origin, content: IO[bytes], packed_position: Callable[[], int], offset: int) -> Iterator[Block]:
    """Read one log from ``offset`` bytes after its beginning."""
    _skip(content, offset)
    while data := _read_block(content):
        yield Block(origin, data, packed_position())
    yield Block(origin, b"", packed_position(), is_last=True)


def _read_block(content: IO[bytes]) -> bytes:
    """Read the next bytes. Returns all that can be unpacked of a truncated file before it raises the error."""
    # read1 returns what is unpacked already; read would raise for a truncated file and lose it.
    read = cast("io.BufferedReader", content).read1
    parts: list[bytes] = []
    size = 0
    try:
        while size < BLOCK_BYTES and (part := read(BLOCK_BYTES - size)):
            parts.append(part)
            size += len(part)
    except (EOFError, zlib.error, lzma.LZMAError):
        if not parts:
            raise
    return b"".join(parts)


def _skip(content: IO[bytes], offset: int) -> None:
    while offset > 0 and (skipped := content.read(min(offset, BLOCK_BYTES))):
        offset -= len(skipped)

"""The bytes of a file, unpacked. Gzip, zstd, xz, bzip2 and tar are recognised by their first bytes, not by name."""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, NamedTuple, Self, cast

import zstandard

from ingest.errors import ReadingError
from ingest.lines.blocks import Origin

BLOCK_BYTES: Final = 256 * 1024

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_XZ: Final = b"\xfd7zXZ\x00"
_BZIP2: Final = b"BZh"
_TAR_MAGIC: Final = slice(257, 262)
HEAD_BYTES: Final = 512
"""So many first bytes tell whether a file is packed."""
_READ_WHOLE: Final = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE
)  # fmt: skip
_MAX_HEADER_BYTES: Final = 1024 * 1024


class UnreadableFileError(ReadingError):
    """A file can't be read, or not to its end; the text names the file and the cause."""


class Block(NamedTuple):
    """A piece of one log."""

    origin: Origin
    data: bytes
    packed_bytes: int
    """How many bytes of the packed file were read so far, for a progress bar."""
    is_last: bool = False
    """True for the block after the last piece of a log, which has no data."""


def read_blocks(path: Path, offset: int = 0) -> Iterator[Block]:
    """The logs in a file, piece by piece: one, or those of an archive's members.

    ``offset``: so many unpacked bytes of the first log are skipped. Raises ``UnreadableError``.
    """
    try:
        with ExitStack() as closing:
            file = closing.enter_context(path.open("rb"))
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            unpacked = _unpacked(file, closing)
            if _is_tar(path, closing):
                yield from _members(path, unpacked, file.tell)
            else:
                yield from _pieces(Origin(str(path), changed), unpacked, file.tell, offset)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, tarfile.TarError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UnreadableFileError(f"{path}: {cause}") from None


def is_packed(head: bytes) -> bool:
    """Of the first ``HEAD_BYTES`` of a file."""
    return head.startswith((_GZIP, _ZSTD, _XZ, _BZIP2)) or head[_TAR_MAGIC] == b"ustar"


def _unpacked(file: IO[bytes], closing: ExitStack) -> IO[bytes]:
    # Names mislead: rotated logs are called ``.log.1`` or ``.gz`` whatever is in them.
    head = file.read(len(_XZ))
    file.seek(0)
    if head.startswith(_GZIP):
        return cast("IO[bytes]", closing.enter_context(gzip.GzipFile(fileobj=file)))
    if head.startswith(_XZ):
        return cast("IO[bytes]", closing.enter_context(lzma.LZMAFile(file)))
    if head.startswith(_BZIP2):
        return cast("IO[bytes]", closing.enter_context(bz2.BZ2File(file)))
    if head.startswith(_ZSTD):
        # Across frames: appended and concatenated files have several.
        return closing.enter_context(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def _is_tar(path: Path, closing: ExitStack) -> bool:
    file = closing.enter_context(path.open("rb"))
    return _unpacked(file, closing).read(HEAD_BYTES)[_TAR_MAGIC] == b"ustar"


class _BoundedHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Raises ``tarfile.ReadError`` for a long name or extended header that is absurd: they are read whole."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _READ_WHOLE and header.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


def _members(path: Path, unpacked: IO[bytes], packed_position: Callable[[], int]) -> Iterator[Block]:
    """The members in order. Read as a stream: unpacked, an archive may be larger than the disk."""
    with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_BoundedHeader) as archive:
        while member := archive.next():
            # The archive keeps all of them otherwise, with their headers.
            archive.members.clear()  # type: ignore[attr-defined]
            if content := archive.extractfile(member):
                changed = datetime.fromtimestamp(max(member.mtime, 0), UTC)
                yield from _pieces(Origin(f"{path}:{member.name}", changed), content, packed_position, 0)


def _pieces(origin: Origin, content: IO[bytes], packed_position: Callable[[], int], offset: int) -> Iterator[Block]:
    _skip(content, offset)
    while data := _block(content):
        yield Block(origin, data, packed_position())
    yield Block(origin, b"", packed_position(), is_last=True)


def _block(content: IO[bytes]) -> bytes:
    """The next bytes. Of a truncated file all that can be unpacked is returned before the error is raised."""
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

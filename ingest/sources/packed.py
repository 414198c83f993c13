"""Unpacks gzip, zstd, xz, bzip2 and tar. A plain log needs none of these libraries: ``blocks`` imports it late."""

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import IO, Final, Self, cast

import zstandard

from ingest.lines.blocks import Origin
from ingest.sources.pieces import (
    BZIP2,
    GZIP,
    HEAD_BYTES,
    TAR_MAGIC,
    XZ,
    ZSTD,
    Block,
    UnreadableFileError,
    estimate_change,
    read_pieces,
)

_READ_WHOLE: Final = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE
)  # fmt: skip
_MAX_HEADER_BYTES: Final = 1024 * 1024


def read_packed_blocks(path: Path, file: IO[bytes], changed: datetime, offset: int) -> Iterator[Block]:
    """Read the logs in a packed file, like ``read_blocks``."""
    try:
        with ExitStack() as closing:
            unpacked = _open_unpacked(file, closing)
            if _is_tar(path, closing):
                yield from _read_members(path, unpacked, changed, file.tell)
            else:
                yield from read_pieces(Origin(str(path), changed), unpacked, file.tell, offset)
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError, tarfile.TarError) as error:
        raise UnreadableFileError(f"{path}: {error}") from None


def _open_unpacked(file: IO[bytes], closing: ExitStack) -> IO[bytes]:
    head = file.read(len(XZ))
    file.seek(0)
    if head.startswith(GZIP):
        return cast("IO[bytes]", closing.enter_context(gzip.GzipFile(fileobj=file)))
    if head.startswith(XZ):
        return cast("IO[bytes]", closing.enter_context(lzma.LZMAFile(file)))
    if head.startswith(BZIP2):
        return cast("IO[bytes]", closing.enter_context(bz2.BZ2File(file)))
    if head.startswith(ZSTD):
        # Across frames: appended and concatenated files have several.
        return closing.enter_context(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def _is_tar(path: Path, closing: ExitStack) -> bool:
    file = closing.enter_context(path.open("rb"))
    return _open_unpacked(file, closing).read(HEAD_BYTES)[TAR_MAGIC] == b"ustar"


class _BoundedHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header. Raises ``tarfile.ReadError`` for an absurdly long name: tarfile reads it at once."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _READ_WHOLE and header.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


def _read_members(
    path: Path, unpacked: IO[bytes], changed: datetime, packed_position: Callable[[], int]
) -> Iterator[Block]:
    """Read the members in order; ``changed`` is the archive's last change.

    Read as a stream: unpacked, an archive may be larger than the disk.
    """
    with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_BoundedHeader) as archive:
        while member := archive.next():
            # The archive keeps all of them otherwise, with their headers.
            archive.members.clear()  # type: ignore[attr-defined]
            if content := archive.extractfile(member):
                origin = Origin(f"{path}:{member.name}", estimate_change(member.mtime, changed))
                yield from read_pieces(origin, content, packed_position, 0)

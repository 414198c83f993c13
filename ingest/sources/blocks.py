"""The bytes of a file, unpacked."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ingest.lines.blocks import Origin
from ingest.sources.formats import HEAD_BYTES, is_packed
from ingest.sources.pieces import Block, UnreadableFileError, changed_at, pieces


def read_blocks(path: Path, offset: int = 0) -> Iterator[Block]:
    """The logs in a file, piece by piece: one, or those of an archive's members.

    ``offset``: so many unpacked bytes of the first log are skipped. Raises ``UnreadableError``.
    """
    try:
        with path.open("rb") as file:
            changed = changed_at(path.stat().st_mtime, datetime.now(UTC))
            is_plain = not is_packed(file.read(HEAD_BYTES))
            file.seek(0)
            if is_plain:
                yield from pieces(Origin(str(path), changed), file, file.tell, offset)
                return
            # A plain log needs none of what unpacks, which takes its time to import.
            from ingest.sources.packed import packed_blocks

            yield from packed_blocks(path, file, changed, offset)
    except OSError as error:
        raise UnreadableFileError(f"{path}: {error.strerror or error}") from None

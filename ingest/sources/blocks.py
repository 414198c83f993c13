"""The bytes of a file, unpacked."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ingest.lines.blocks import Origin
from ingest.sources.formats import HEAD_BYTES, is_packed
from ingest.sources.pieces import Block, UnreadableFileError, estimate_change, read_pieces


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

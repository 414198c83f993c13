"""Files of a case: those below its folders, and the members of archives of objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ingest.errors import MistakeError
from ingest.sources.pieces import TAR_MAGIC

MAX_FILES: Final = 20_000
MAX_UNPACKED_BYTES: Final = 4 * 1024**3


def list_files(path: Path) -> Iterator[Path]:
    """List a file, or all files below a folder. Raises ``MistakeError`` for a folder of too many."""
    if not path.is_dir():
        yield path
        return
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
    if not files:
        raise MistakeError(f"{path} is a folder without files")
    if len(files) > MAX_FILES:
        raise MistakeError(f"{path} has {len(files):,} files, at most {MAX_FILES:,} are read: name the folders in it")
    yield from files


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def unpack_objects(file: Path, head: bytes, folder: Path) -> list[Path]:
    """Unpack an archive that holds objects into a folder of its own; an archive of logs is read as a log."""
    import tarfile

    if head[TAR_MAGIC] != b"ustar" and not tarfile.is_tarfile(file):
        return []
    with tarfile.open(file) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        if not any(member.name.endswith((".yaml", ".yml", ".json")) for member in members):
            return []
        if sum(member.size for member in members) > MAX_UNPACKED_BYTES or len(members) > MAX_FILES:
            raise MistakeError(f"{file} is larger than is unpacked here: unpack it and name the folders to read")
        target = folder / f"archive-{len(list(folder.iterdir()))}"
        archive.extractall(target, members, filter="data")
    return [target]

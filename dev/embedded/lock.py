"""The lock file ``jars.lock``: the jars of each server, with size and SHA-256.

One line per jar: ``server path size sha256``, the path as in a Maven repository. A jar that two servers need has a
line for each; a plugin of OpenSearch is a zip of jars. ``python -m dev.embedded.lock kafka=FOLDER opensearch=FOLDER
secured-opensearch=FOLDER`` writes it from folders in Maven's repository layout; docs/embedded.md has the commands that
make those folders. Only a change of version needs Maven.
"""

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from dev.embedded.errors import LockError

ServerKind = Literal["kafka", "opensearch", "secured-opensearch"]
LOCKED: Final[tuple[ServerKind, ...]] = get_args(ServerKind)
# What runs where nothing else is asked for. The third is for tests of TLS and roles.
KINDS: Final[tuple[ServerKind, ...]] = ("kafka", "opensearch")
LOCK_FILE: Final = Path(__file__).with_name("jars.lock")

# No segment begins with a dot, so that no path leads out of the cache folder.
_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._+-]*/)+[A-Za-z0-9_][A-Za-z0-9._+-]*\.(?:jar|zip)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """One file of the repository: ``path`` below its base URL, ``size`` in bytes, ``sha256`` in hex."""

    path: str
    size: int
    sha256: str


Lock = dict[ServerKind, tuple[Jar, ...]]


def parse_lock(text: str, source: str = "jars.lock") -> Lock:
    """Read a lock file; raises LockError with the line."""
    jars_by_kind: dict[ServerKind, list[Jar]] = {kind: [] for kind in LOCKED}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            kind, jar = _parse_line(line, f"{source}:{number}")
            jars_by_kind[kind].append(jar)
    return {kind: tuple(jars) for kind, jars in jars_by_kind.items()}


def read_lock(file: Path = LOCK_FILE) -> Lock:
    """Read the lock file of this version; raises LockError."""
    try:
        return parse_lock(file.read_text(encoding="ascii"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise LockError(f"{file}: cannot be read ({error}). Restore it: git checkout -- {file}") from error


def list_jars(lock: Lock, kinds: Iterable[ServerKind] = KINDS) -> tuple[Jar, ...]:
    """List every jar that these servers need, without duplicates, sorted by path."""
    # Both servers need some of the same jars (log4j, HdrHistogram): each is downloaded once.
    return tuple(sorted({jar for kind in kinds for jar in lock[kind]}))


def _parse_line(line: str, location: str) -> tuple[ServerKind, Jar]:
    match line.split():
        case [("kafka" | "opensearch" | "secured-opensearch") as kind, path, size, sha256]:
            pass
        case _:
            raise LockError(f"{location}: expected '{'|'.join(LOCKED)} path size sha256', found {line!r}")
    if not _PATH.fullmatch(path):
        raise LockError(f"{location}: {path!r} is not the path of a jar or zip in a Maven repository")
    if not (size.isascii() and size.isdigit() and int(size) > 0):
        raise LockError(f"{location}: {size!r} is not a size in bytes")
    if not _SHA256.fullmatch(sha256):
        raise LockError(f"{location}: {sha256!r} is not a SHA-256 in lower-case hex")
    return kind, Jar(path, int(size), sha256)


def _write_lines(kind: str, folder: Path) -> Iterator[str]:
    for file in sorted(file for file in folder.rglob("*") if file.suffix in {".jar", ".zip"}):
        data = file.read_bytes()
        path = file.relative_to(folder).as_posix()
        yield f"{kind} {path} {len(data)} {hashlib.sha256(data).hexdigest()}"


def main(arguments: list[str]) -> int:
    """Write jars.lock from ``kind=FOLDER`` arguments, one for each server."""
    folders = dict(argument.partition("=")[::2] for argument in arguments)
    if set(folders) != set(LOCKED) or not all(Path(folder).is_dir() for folder in folders.values()):
        usage = " ".join(f"{kind}=FOLDER" for kind in LOCKED)
        sys.stderr.write(f"usage: python -m dev.embedded.lock {usage} (Maven repository layout)\n")
        return 2
    lines = [line for kind in LOCKED for line in _write_lines(kind, Path(folders[kind]))]
    # What is written must be what can be read.
    parse_lock("\n".join(lines))
    header = "# server path size sha256 (written by python -m dev.embedded.lock; see docs/embedded.md)\n"
    LOCK_FILE.write_text(header + "\n".join(lines) + "\n", encoding="ascii")
    sys.stdout.write(f"{LOCK_FILE}: {len(lines)} jars\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

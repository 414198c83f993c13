"""System calls of the spool: only ``files`` makes them, so that no call escapes the tests in which they fail."""

import ast
import asyncio
import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

import scheduler
from scheduler.publish.spool import files
from scheduler.publish.spool.group_commit import GroupCommit

PACKAGE = Path(scheduler.__path__[0])
MODULES = [
    path for path in [*PACKAGE.glob("publish/**/*.py"), PACKAGE / "bind/bind_journal.py"] if path.name != "files.py"
]
OPENING = {"os", "io", "fcntl", "shutil", "tempfile", "mmap", "runtime.files.state_files"}
OF_PATHS = {name for name in set(dir(Path)) - set(dir(PurePath)) if not name.startswith("_")}
"""Methods that make system calls."""


def find_file_calls(source: str) -> Iterator[str]:
    """Find what in a module's text touches files, or could."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & OPENING
        elif isinstance(node, ast.ImportFrom):
            yield from {node.module or ""} & OPENING
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from {node.func.id} & {"open"}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # `files.replace` is one of ours.
            is_ours = isinstance(node.func.value, ast.Name) and node.func.value.id == "files"
            yield from {node.func.attr} & (set() if is_ours else OF_PATHS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_other_module_of_the_spool_touches_a_file(path: Path) -> None:
    assert list(find_file_calls(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    ["import os", "from os import open", "open('a')", "path.read_bytes()", "path.replace(b)", "self.path.exists()"],
)
def test_what_touches_a_file_is_found(source: str) -> None:
    assert list(find_file_calls(source)) != []


def test_a_read_continues_behind_what_the_kernel_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, length, offset: pread(file, min(length, 7), offset))
    assert files.read_all(tmp_path / "file") == bytes(range(100))


def test_a_file_that_can_not_be_replaced_is_as_it_was_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft on a full disk would take the space that it needs to continue."""
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OSError, match="No space left"):
        files.replace(path, [b"after"])
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"file": b"before"}


async def test_a_call_that_the_pool_keeps_although_it_has_no_thread_closes_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ThreadPoolExecutor.submit` queues the call, raises that no thread can be started, and makes the call later."""
    calls = []

    async def to_thread(call: object, *words: object) -> None:
        calls.append((call, words))
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    handle = os.open(tmp_path, os.O_RDONLY)
    commit = GroupCommit(lambda: handle, lambda: None, lambda _: None)
    commit.note_append()
    await commit.flush()
    # The lowest number that is free: the one that was closed.
    other = os.open(tmp_path, os.O_RDONLY)
    assert other == handle
    for call, words in calls:
        call(*words)  # type: ignore[operator]
    os.close(other)

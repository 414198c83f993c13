"""A file that grows, is renamed, is truncated or does not exist yet: every line is read once."""

import asyncio
import base64
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ingest.lines.blocks import LogPosition
from ingest.reading.checkpoint import Checkpoint, CheckpointError, CheckpointState
from ingest.sources.follow import Reached, follow

POLL = 0.01


class Followed:
    """Follows a file in a task of its own and keeps what it reads."""

    def __init__(self, path: Path, reached: Reached | None = None) -> None:
        self.texts: list[bytes] = []
        self.reached = reached or Reached()
        self._task = asyncio.create_task(self._follow(path))

    async def _follow(self, path: Path) -> None:
        async for lines, reached in follow(path, self.reached, poll_seconds=POLL):
            self.texts += lines.texts
            self.reached = reached

    async def until(self, *texts: bytes) -> None:
        async with asyncio.timeout(10):
            while len(self.texts) < len(texts):
                assert not self._task.done() or self._task.result() is None
                await asyncio.sleep(POLL)
        assert self.texts == list(texts)

    async def stop(self) -> Reached:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        return self.reached


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


async def follow_through(
    path: Path, take_steps: Callable[[Followed], Awaitable[None]], reached: Reached | None = None
) -> Reached:
    following = Followed(path, reached)
    try:
        await take_steps(following)
    finally:
        await following.stop()
    return following.reached


async def test_a_file_is_waited_for_and_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"

    async def take_steps(following: Followed) -> None:
        await asyncio.sleep(3 * POLL)
        append(path, b"one\ntw")
        await following.until(b"one")
        append(path, b"o\n")
        await following.until(b"one", b"two")

    await follow_through(path, take_steps)


async def test_a_renamed_file_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    append(path, b"one\n")

    async def take_steps(following: Followed) -> None:
        await following.until(b"one")
        path.rename(tmp_path / "a.log.1")
        append(tmp_path / "a.log.1", b"two\n")
        append(path, b"three\n")
        await following.until(b"one", b"two", b"three")

    await follow_through(path, take_steps)


async def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    append(path, b"a long first line\n")

    async def take_steps(following: Followed) -> None:
        await following.until(b"a long first line")
        path.write_bytes(b"new\n")
        await following.until(b"a long first line", b"new")
        path.write_bytes(b"newer, and longer than what was there before\n")
        await following.until(b"a long first line", b"new", b"newer, and longer than what was there before")

    await follow_through(path, take_steps)


@pytest.mark.parametrize(("pack", "name"), [(bytes, "a.log"), (gzip.compress, "a.log"), (bytes, "a[1].log")])
async def test_after_a_restart_what_was_rotated_away_meanwhile_is_read_first(
    pack: Callable[[bytes], bytes], name: str, tmp_path: Path
) -> None:
    """L14: also of a name that a pattern of file names would read as one."""
    path = tmp_path / name
    append(path, b"one\n")

    async def write_first(following: Followed) -> None:
        await following.until(b"one")

    reached = await follow_through(path, write_first)
    (tmp_path / f"{name}.1").write_bytes(pack(b"one\ntwo\n"))
    path.write_bytes(b"three\n")

    async def write_second(following: Followed) -> None:
        await following.until(b"two", b"three")

    await follow_through(path, write_second, reached)


def test_a_checkpoint_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c.json", "hami-log", "a.log")
    assert checkpoint.load() == CheckpointState()
    state = CheckpointState(Reached(LogPosition(12, 3), "4:abc"), "", b"\x00memory")
    checkpoint.save(state)
    assert checkpoint.load() == state
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_a_checkpoint_of_repeated_words_is_small_and_one_of_a_version_that_did_not_pack_them_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.json"
    checkpoint = Checkpoint(path, "kai-log", "a.log")
    memory = b"".join(b'{"node":"gpu-%d","reason":"not enough idle GPUs"}' % node for node in range(1_000))
    checkpoint.save(CheckpointState(memory=memory))
    assert path.stat().st_size < len(memory) / 5
    assert checkpoint.load().memory == memory
    saved = json.loads(path.read_bytes())
    path.write_text(json.dumps(saved | {"memory": base64.b64encode(memory).decode()}))
    assert checkpoint.load().memory == memory


def test_a_checkpoint_of_another_log_or_a_broken_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    Checkpoint(path, "hami-log", "a.log").save(CheckpointState())
    with pytest.raises(CheckpointError, match=r"about a\.log"):
        Checkpoint(path, "hami-log", "b.log").load()
    path.write_bytes(b"{")
    with pytest.raises(CheckpointError, match="delete it"):
        Checkpoint(path, "hami-log", "a.log").load()


@pytest.mark.parametrize("left", [b"", b"\0" * 4096])
def test_a_checkpoint_that_a_crash_left_empty_is_read_from_the_beginning(
    tmp_path: Path, left: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(left)
    checkpoint = Checkpoint(path, "hami-log", "a.log")
    assert checkpoint.load() == CheckpointState()
    assert caplog.messages == [f"{path} is empty: a.log is read from its beginning"]
    state = CheckpointState(Reached(LogPosition(12, 3), "4:abc"))
    checkpoint.save(state)
    assert checkpoint.load() == state


def test_a_checkpoint_is_one_process_own(tmp_path: Path) -> None:
    write_first, write_second = (Checkpoint(tmp_path / "c.json", "hami-log", "a.log") for _ in range(2))
    with write_first.held(), pytest.raises(CheckpointError, match="in use by another process"), write_second.held():
        pass
    with write_second.held():
        pass
    with pytest.raises(CheckpointError, match="No such file"), Checkpoint(tmp_path / "no" / "c", "x", "y").held():
        pass

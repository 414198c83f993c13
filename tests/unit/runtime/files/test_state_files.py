"""Files are of their owner alone, and no link leads the writer elsewhere."""

import asyncio
import os
from pathlib import Path

import pytest

from ingest.reading.checkpoint import Checkpoint, CheckpointError, CheckpointState
from pipeline.notify.sent_memory import FileStore
from runtime.files.state_files import open_private, replace_private
from scheduler.publish.spool.spool import Spool
from tests.support.builders.spool_entries import a_verdict


def list_modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()}


def test_l3_a_file_is_of_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_private(tmp_path / "a", "wb") as file:
            file.write(b"x")
        Checkpoint(tmp_path / "checkpoint", "hami-log", "a.log").save(CheckpointState())
        asyncio.run(FileStore(tmp_path / "sent.json").save(b"[]"))
        spool = Spool(tmp_path / "spool")
        spool.append([a_verdict()])
        spool.close()
    finally:
        os.umask(before)
    assert list_modes(tmp_path) == {"0o600"}
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700


def test_l3_a_lock_neither_empties_nor_follows_what_a_link_leads_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("content")
    (tmp_path / "checkpoint.lock").symlink_to(precious)
    with pytest.raises(CheckpointError, match="symbolic link"), Checkpoint(tmp_path / "checkpoint", "a", "b").held():
        pass
    assert precious.read_text() == "content"


def test_l3_a_draft_is_not_written_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("content")
    (tmp_path / "checkpoint.new").symlink_to(precious)
    with pytest.raises(CheckpointError, match="symbolic link"):
        Checkpoint(tmp_path / "checkpoint", "a", "b").save(CheckpointState())
    assert precious.read_text() == "content"


def test_a_file_is_replaced_at_once_and_leaves_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "state"
    for content in (b"a longer text of before", b"short"):
        replace_private(file, content)
        assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_that_of_before(tmp_path: Path) -> None:
    file = tmp_path / "state"
    replace_private(file, b"before")
    (tmp_path / "state.new").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_private(file, b"after")
    assert file.read_bytes() == b"before"

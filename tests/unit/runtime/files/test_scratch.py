"""One folder for what a process stores while it runs; nothing of ended processes stays there."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runtime.files.scratch import locate_scratch_root, remove_left_behind, scratch_folder

HOLDS = """
import time
from runtime.files.scratch import scratch_folder
with scratch_folder("held") as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def list_folders() -> list[Path]:
    return [path for path in locate_scratch_root().iterdir() if path.is_dir()]


def test_a_folder_is_there_while_it_is_used_and_gone_afterwards() -> None:
    with scratch_folder("worker") as folder:
        (folder / "file").touch()
        assert list_folders() == [folder]
    assert list_folders() == []


def test_the_next_start_removes_the_folder_of_a_killed_process_and_no_other(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        with scratch_folder("worker"):
            assert (folder / "file").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert folder.exists()
    with scratch_folder("worker") as mine:
        assert list_folders() == [mine]


def test_what_was_left_behind_can_be_removed_without_starting() -> None:
    remove_left_behind()
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        remove_left_behind()
        assert len(list_folders()) == 1
        process.kill()
    remove_left_behind()
    assert list_folders() == []

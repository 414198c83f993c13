import subprocess
import sys
from pathlib import Path

import pytest

from dev.embedded.locking import file_lock

HOLDS_IT = """
import sys
from pathlib import Path
from dev.embedded.locking import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def start_holder(lock: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_IT, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_free_lock_is_taken_without_waiting_and_given_back(tmp_path: Path) -> None:
    waited: list[str] = []
    for _ in range(2):
        with file_lock(tmp_path / "below" / ".lock", lambda: waited.append("once")):
            pass
    assert waited == []


def test_a_held_lock_is_waited_for_until_its_holder_is_killed(tmp_path: Path) -> None:
    process = start_holder(tmp_path / ".lock")
    waited: list[str] = []

    def on_waiting() -> None:
        waited.append("again")
        process.kill()

    with process, file_lock(tmp_path / ".lock", lambda: waited.append("once"), on_waiting):
        assert waited[:2] == ["once", "again"]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), file_lock(tmp_path / "file" / "below" / ".lock"):
        pass

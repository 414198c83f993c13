import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dev.embedded.process import Child, ParentWatch, ProcessId, read_last_lines, read_start_time, spawn
from tests.support.waiting import eventually

SLEEPS = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); time.sleep(600)",
]


def start_child(command: list[str], folder: Path, parent_watch: ParentWatch | None = None) -> Child:
    child = spawn(command, folder / "log", os.environ, parent_watch)
    eventually(lambda: (folder / "log").read_text() == "here\n")
    return child


def test_a_process_is_known_by_its_id_and_its_start(tmp_path: Path) -> None:
    child = start_child(SLEEPS, tmp_path)
    assert child.id.is_alive()
    assert (child.id.measure_memory_mib() or 0) > 1
    assert child.id.kill()
    assert not child.id.is_alive()
    assert child.id.measure_memory_mib() is None
    assert child.popen.wait() == -signal.SIGKILL


def test_a_stranger_with_a_recycled_id_is_never_signalled(tmp_path: Path) -> None:
    stranger = start_child(SLEEPS, tmp_path)
    remembered = ProcessId(stranger.id.pid, "long ago")
    assert not remembered.is_alive()
    assert remembered.stop(grace_seconds=0)
    assert remembered.kill()
    assert stranger.id.is_alive()
    stranger.id.kill()
    stranger.popen.wait()


def test_a_zombie_is_not_alive(tmp_path: Path) -> None:
    child = spawn([sys.executable, "-c", ""], tmp_path / "log", os.environ, None)
    eventually(lambda: not child.id.is_alive())
    assert read_start_time(child.id.pid) is None
    assert child.exit_status() == 0


def test_a_name_with_spaces_and_parentheses_does_not_confuse(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "600"]) as process:
        first = read_start_time(process.pid)
        assert first is not None
        assert first.isdigit()
        assert read_start_time(process.pid) == first
        process.kill()


def test_who_does_not_listen_to_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    child = start_child(DEAF, tmp_path)
    assert child.id.stop(grace_seconds=0.3)
    assert child.popen.wait() == -signal.SIGKILL


def test_a_paused_process_is_stopped_in_order(tmp_path: Path) -> None:
    child = start_child(SLEEPS, tmp_path)
    child.id.send(signal.SIGSTOP)
    assert child.id.stop(grace_seconds=5)
    assert child.popen.wait() == -signal.SIGTERM


def test_a_watched_process_is_the_command_itself(tmp_path: Path) -> None:
    parent_watch = ParentWatch()
    child = start_child(SLEEPS, tmp_path, parent_watch)
    assert Path(f"/proc/{child.id.pid}/cmdline").read_bytes().split(b"\0")[2].startswith(b"import time; print")
    assert child.id.kill()
    assert child.popen.wait() == -signal.SIGKILL
    parent_watch.close()


def test_a_watched_process_dies_when_the_watch_is_closed(tmp_path: Path) -> None:
    parent_watch = ParentWatch()
    child = start_child(SLEEPS, tmp_path, parent_watch)
    parent_watch.close()
    assert child.popen.wait(timeout=120) == -signal.SIGKILL


def test_the_watcher_ends_with_the_process_that_it_watches(tmp_path: Path) -> None:
    parent_watch = ParentWatch()
    child = start_child(SLEEPS, tmp_path, parent_watch)
    children = Path(f"/proc/{child.id.pid}/task/{child.id.pid}/children")
    watcher = int(children.read_text())
    child.id.kill()
    child.popen.wait()
    eventually(lambda: read_start_time(watcher) is None)
    parent_watch.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_watched_process_does_not_survive_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import os, sys, threading, time; from pathlib import Path\n"
        "from dev.embedded.process import ParentWatch, spawn\n"
        f"start = lambda: print(spawn({SLEEPS!r}, Path({str(tmp_path / 'log')!r}), os.environ, ParentWatch()).id.pid)\n"
        # From a thread that ends, as a pool's threads do: the process must outlive it.
        "thread = threading.Thread(target=start); thread.start(); thread.join(); sys.stdout.flush(); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path.cwd()) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        eventually(lambda: (tmp_path / "log").read_text() == "here\n")
        assert read_start_time(pid) is not None
        starter.send_signal(number)
        eventually(lambda: read_start_time(pid) is None)


def test_the_last_lines_of_a_log_are_cut_to_a_readable_length(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(100_000)) + b"x" * 1000 + b"\n\xff\xfe end")
    lines = read_last_lines(log, 3)
    assert lines == ["line 99999", "x" * 400, "\ufffd\ufffd end"]
    assert read_last_lines(tmp_path / "nothing") == []

import signal
import socket
import sys
from pathlib import Path

import pytest

from dev.embedded.errors import NotRunningError, PortTakenError, ServerError
from dev.embedded.ports import KAFKA_PORTS, find_free_port
from dev.embedded.server import Server


class Program(Server):
    """A server that is a line of Python; ready when it has created its file."""

    kind = "kafka"

    def __init__(self, home: Path, program: str, port: int = 0) -> None:
        super().__init__("program", home, port or find_free_port(KAFKA_PORTS), parent_watch=None)
        self._program = program

    def prepare(self) -> None:
        (self.home / "ready").unlink(missing_ok=True)

    def build_command(self) -> list[str]:
        return [sys.executable, "-c", self._program, str(self.home / "ready")]

    def is_answering(self) -> bool:
        return (self.home / "ready").exists()


READY = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(600)"


def test_a_server_starts_stops_and_starts_again(tmp_path: Path) -> None:
    server = Program(tmp_path, READY)
    server.start()
    first = server.pid
    server.start()
    assert server.pid == first
    server.stop()
    assert not server.is_alive
    server.stop()
    server.start()
    assert server.pid != first
    server.kill()
    assert not server.is_alive


def test_a_dying_server_shows_its_last_lines_and_exit_status(tmp_path: Path) -> None:
    server = Program(tmp_path, "for n in range(50): print('line', n)\nraise SystemExit(3)")
    with pytest.raises(ServerError) as caught:
        server.start()
    text = str(caught.value)
    assert "program died while starting (exit status 3)" in text
    assert str(tmp_path / "server.log") in text
    assert caught.value.last_lines == [f"line {number}" for number in range(30, 50)]
    assert "    line 49" in text
    assert not isinstance(caught.value, PortTakenError)


def test_a_taken_port_is_named_though_the_log_continues_below_it(tmp_path: Path) -> None:
    busy = "java.net.BindException: Address already in use"
    program = f"print({busy!r})\nfor n in range(50): print('setting', n)\nraise SystemExit(1)"
    with pytest.raises(PortTakenError) as caught:
        Program(tmp_path, program).start()
    assert caught.value.last_lines[0] == busy
    assert caught.value.last_lines[-1] == "setting 49"


def test_a_server_killed_while_starting_names_the_signal(tmp_path: Path) -> None:
    server = Program(tmp_path, f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    with pytest.raises(ServerError, match=r"by SIGSEGV\)(.|\n)*the log is empty"):
        server.start()


def test_a_server_that_never_gets_ready_is_given_up(tmp_path: Path) -> None:
    server = Program(tmp_path, "import time; print('thinking', flush=True); time.sleep(600)")
    server.launch()
    with pytest.raises(ServerError, match=r"was not ready after 1 s(.|\n)*thinking"):
        server.wait_until_ready(timeout_seconds=1)
    server.kill()


@pytest.mark.parametrize("words", ["java.net.BindException: x", "Socket failed: Address already in use."])
def test_a_port_taken_in_between_is_an_error_of_its_own(tmp_path: Path, words: str) -> None:
    server = Program(tmp_path, f"print({words!r}); raise SystemExit(1)")
    with pytest.raises(PortTakenError, match="died while starting"):
        server.start()


def test_a_busy_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = Program(tmp_path, READY, port=other.getsockname()[1])
        with pytest.raises(PortTakenError, match=f"port {server.port} on 127.0.0.1 is taken"):
            server.start()
    assert not server.log.exists()


def test_the_lines_of_an_earlier_run_do_not_explain_a_later_one(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("Address already in use\n")
    with pytest.raises(ServerError) as caught:
        Program(tmp_path, "raise SystemExit(1)").start()
    assert caught.value.last_lines == []


def test_what_does_not_run_cannot_be_paused(tmp_path: Path) -> None:
    server = Program(tmp_path, READY)
    for action in (server.pause, server.resume):
        with pytest.raises(NotRunningError, match="program does not run"):
            action()
    assert server.measure_memory_mib() is None

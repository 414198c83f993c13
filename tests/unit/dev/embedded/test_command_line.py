import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dev.embedded.__main__ import main
from dev.embedded.status import Status, show


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs a command as ``python -m dev.embedded`` does, in this process: a start of Python takes longer than it."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["embedded", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def test_help_explains_every_command() -> None:
    # As a process of its own: this one test starts it as a user does.
    completed = subprocess.run(
        [sys.executable, "-m", "dev.embedded", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("up", "down", "status", "env", "install"):
        assert f" {command} " in completed.stdout


def test_where_nothing_was_started_every_command_says_so(embedded: Callable[..., Ended], tmp_path: Path) -> None:
    folder = str(tmp_path / "never")
    down, status, env = (embedded(command, "--dir", folder) for command in ("down", "status", "env"))
    assert (down.status, down.out) == (0, "")
    assert "nothing was running" in down.err
    assert (status.status, status.out) == (1, "")
    assert "nothing was started" in status.err
    assert (env.status, env.out) == (1, "")
    assert "schedulerlog embedded up" in env.err
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("arguments", [["--brokers", "2"], ["--only", "redis"], ["--dir"]])
def test_a_senseless_option_is_refused(embedded: Callable[..., Ended], arguments: list[str]) -> None:
    refused = embedded("up", *arguments)
    assert refused.status == 2
    assert arguments[0] in refused.err


def test_an_error_is_a_message_without_a_traceback(embedded: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("nonsense")
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path, tmp_path / "file"):
        refused = embedded("status", "--dir", str(folder))
        assert refused.status == 1
        assert refused.err.startswith("embedded: ")
        assert "Traceback" not in refused.err


def test_the_status_of_a_server_is_a_line_of_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    running = Status("kafka", 17, 9092, 311.5, Path("/data/kafka/server.log"))
    show([running], Path("/data"), "json")
    assert json.loads(capsys.readouterr().out) == {
        "name": "kafka", "is_up": True, "pid": 17, "port": 9092, "memory_mib": 311.5, "log": "/data/kafka/server.log",
    }  # fmt: skip

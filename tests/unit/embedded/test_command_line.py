import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from embedded.__main__ import app
from embedded.status import Status, show


def embedded(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embedded", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def called(*arguments: str) -> Result:
    """In this process: a start of Python takes longer than the command."""
    return CliRunner().invoke(app, arguments)


def test_help_explains_every_command() -> None:
    shown = embedded("--help")
    assert shown.returncode == 0
    for command in ("up", "down", "status", "env", "install"):
        assert f" {command} " in shown.stdout


def test_where_nothing_was_started_every_command_says_so(tmp_path: Path) -> None:
    folder = str(tmp_path / "never")
    down, status, env = (embedded(command, "--dir", folder) for command in ("down", "status", "env"))
    assert (down.returncode, down.stdout) == (0, "")
    assert "nothing was running" in down.stderr
    assert (status.returncode, status.stdout) == (1, "")
    assert "nothing was started" in status.stderr
    assert (env.returncode, env.stdout) == (1, "")
    assert "schedulerlog embedded up" in env.stderr
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("arguments", [["--brokers", "2"], ["--only", "redis"], ["--dir"]])
def test_a_senseless_option_is_refused(arguments: list[str]) -> None:
    refused = called("up", *arguments)
    assert refused.exit_code == 2
    assert arguments[0] in refused.stderr


def test_an_error_is_a_message_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("nonsense")
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path, tmp_path / "file"):
        refused = embedded("status", "--dir", str(folder))
        assert refused.returncode == 1
        assert refused.stderr.startswith("embedded: ")
        assert "Traceback" not in refused.stderr


def test_the_status_of_a_server_is_a_line_of_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    running = Status("kafka", 17, 9092, 311.5, Path("/data/kafka/server.log"))
    show([running], Path("/data"), "json")
    assert json.loads(capsys.readouterr().out) == {
        "name": "kafka", "is_up": True, "pid": 17, "port": 9092, "memory_mib": 311.5, "log": "/data/kafka/server.log",
    }  # fmt: skip

"""``--profiling`` of a command: an option of every process that runs for long, and nothing without it."""

import sys

import httpx
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import ingest.__main__
import pipeline.__main__
from api.__main__ import app as api_app
from runtime.telemetry.profiled import profiled

LONG_RUNNING = [
    *((pipeline.__main__.app, name) for name in ("worker", "index", "placements", "alerts", "alertmanager", "events")),
    (pipeline.__main__.app, "retention"),
    *((ingest.__main__.app, name) for name in ("hami-log", "kai-log", "sniffer", "raw-logs", "kube-events")),
    (api_app, "serve"),
]


def a_command() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @profiled
    def work(times: int = 1) -> None:
        typer.echo(f"worked {times}")

    return app


@pytest.mark.parametrize(("app", "name"), LONG_RUNNING, ids=lambda value: value if isinstance(value, str) else "")
def test_every_process_that_runs_for_long_has_the_option(app: typer.Typer, name: str) -> None:
    command = getattr(get_command(app), "commands", {})[name]
    variables = {option.name: option.envvar for option in command.params}
    assert variables["profiling"] == "SCHEDULERLOG_PROFILING"
    assert variables["profiling_address"] == "SCHEDULERLOG_PROFILING_ADDRESS"


def test_the_command_runs_with_its_own_options_while_profiles_are_served() -> None:
    app = typer.Typer()
    pages = []

    @app.command()
    @profiled
    def work(times: int = 1) -> None:
        pages.append(times)

    result = CliRunner().invoke(app, ["--times", "3", "--profiling", "--profiling-address", "0"])
    assert (result.exit_code, pages) == (0, [3])
    assert result.stderr.startswith("profiles are at http://127.0.0.1:")
    # They end with the command.
    with pytest.raises(httpx.ConnectError):
        httpx.get(result.stderr.split()[-1], timeout=5)


def test_the_variables_switch_it_on_and_a_flag_switches_it_off() -> None:
    variables = {"SCHEDULERLOG_PROFILING": "true", "SCHEDULERLOG_PROFILING_ADDRESS": "127.0.0.1:0"}
    assert "profiles are at" in CliRunner().invoke(a_command(), [], env=variables).stderr
    result = CliRunner().invoke(a_command(), ["--no-profiling"], env=variables)
    assert (result.stdout, result.stderr) == ("worked 1\n", "")


def test_without_it_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "runtime.telemetry.profiling.server", None)  # importing it would fail
    result = CliRunner().invoke(a_command(), [])
    assert (result.exit_code, result.output) == (0, "worked 1\n")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (":6060", "--profiling-address: ':6060' is not HOST:PORT: write for example 127.0.0.1:8080\n"),
        ("192.0.2.1:0", "--profiling-address: can't listen on 192.0.2.1:0: "),
    ],
)
def test_an_address_that_can_not_be_used_is_one_line(address: str, message: str) -> None:
    result = CliRunner().invoke(a_command(), ["--profiling", "--profiling-address", address])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1

"""``--help`` of every command of every package that has commands can be rendered."""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import dev.bench.__main__
import ingest.__main__
import schemas.__main__
from cli.command import app

APPLICATIONS = {"schedulerlog": app, "bench": dev.bench.__main__.app, "schemas": schemas.__main__.app}
SCRIPTS = "dev.bench.soak", "tests.chaos.__main__", "tests.conformance.__main__", "tests.fuzz.__main__"
WIDE = {"COLUMNS": "120", "TERMINAL_WIDTH": "120"}


def iterate_command_lines(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    if names := getattr(command, "commands", {}):
        context = command.make_context(words[-1], [], resilient_parsing=True)
        for name in names:
            yield from iterate_command_lines(command.resolve_command(context, [name])[1], *words, name)


ALL = [
    line for name, application in APPLICATIONS.items() for line in iterate_command_lines(get_command(application), name)
]


@pytest.mark.parametrize("line", ALL, ids=" ".join)
def test_the_help_of_a_command_is_rendered(line: tuple[str, ...]) -> None:
    package, *words = line
    result = CliRunner().invoke(APPLICATIONS[package], [*words, "--help"], env=WIDE)
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_the_commands_below_commands_are_found() -> None:
    lines = {" ".join(line) for line in ALL}
    assert {
        "schedulerlog ingest hami-log",
        "schedulerlog pipeline dead-letters list",
        "schedulerlog embedded kubernetes up",
        "schedulerlog demo",
    } <= lines


@pytest.mark.parametrize("line", [line for line in ALL if {"serve", "worker", "index"} & set(line)], ids=" ".join)
def test_l10_no_service_offers_to_serve_profiles(line: tuple[str, ...]) -> None:
    package, *words = line
    screen = CliRunner().invoke(APPLICATIONS[package], [*words, "--help"], env=WIDE).output
    assert "Options" in screen
    assert "profil" not in screen.lower()


def test_a_place_in_brackets_is_shown_as_it_is_written() -> None:
    result = CliRunner().invoke(ingest.__main__.app, ["hami-log", "--help"], env=WIDE)
    assert "NAMESPACE/NAME[/CONTAINER]" in result.output


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_help_of_a_script_is_printed(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit) as ended:
        import_module(script).main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out

"""Bad input ends every command with exit code 2 and a line that names it; docs/operations.md has the table."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.command import app

TABLE = Path("docs/operations.md").read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]


def iterate_commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Iterate over the commands that have no commands below them, with the words that call them."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    context = command.make_context("schedulerlog", [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from iterate_commands(command.resolve_command(context, [name])[1], *words, name)


COMMANDS = dict(iterate_commands(get_command(app)))
TAKE_SETTINGS = [
    words
    for words, command in COMMANDS.items()
    if any("--kafka" in option.opts for option in command.params) and "simulate" not in words
]


def invoke(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_no_command_has_is_a_mistake_of_the_caller(words: tuple[str, ...]) -> None:
    status, output = invoke(*words, "--no-such-option")
    assert (status, "--no-such-option" in output) == (2, True), output


@pytest.mark.parametrize("words", TAKE_SETTINGS, ids=" ".join)
def test_a_wrong_setting_is_a_mistake_of_the_caller(words: tuple[str, ...]) -> None:
    places = ["1"] * sum(getattr(param, "required", False) for param in COMMANDS[words].params)
    status, output = invoke(*words, *places, "--kafka", "no address")
    assert status == 2, output
    # Some lack another setting, which is named first.
    assert re.search("--[a-z]", output)
    assert "Traceback" not in output


def test_commands_that_take_settings_are_found() -> None:
    assert {("pipeline", "worker"), ("pipeline", "dead-letters", "list"), ("scheduler", "serve")} <= {*TAKE_SETTINGS}


def test_the_table_has_every_exit_code_once() -> None:
    assert re.findall(r"^\| (\d+) \|", TABLE, re.MULTILINE) == ["0", "1", "2", "130"]


def test_what_is_not_there_is_no_mistake_of_the_caller(tmp_path: Path) -> None:
    assert invoke("embedded", "status", "--dir", str(tmp_path / "never"))[0] == 1

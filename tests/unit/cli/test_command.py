import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli import command
from cli.command import COMMANDS, app
from runtime.cli.lazy_commands import LazyCommand, create_lazy_application, load

WIDE = {"COLUMNS": "120", "TERMINAL_WIDTH": "120"}


def test_without_a_command_the_help_names_every_package() -> None:
    result = CliRunner().invoke(app, [], env=WIDE)
    assert set(COMMANDS) <= set(re.findall(r"^  ([a-z]+)  ", result.output, re.MULTILINE))


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    answer = CliRunner().invoke(app, ["pipelin"], env=WIDE)
    assert answer.exit_code == 2
    assert "No such command 'pipelin'. Did you mean 'pipeline'?" in answer.stderr
    below = CliRunner().invoke(app, ["pipeline", "provison"], env=WIDE)
    assert "Did you mean 'provision'?" in below.stderr


def test_usage_names_the_command_however_it_was_started() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "schedulerlog", "ingest", "hami-log", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Usage: schedulerlog ingest hami-log ")


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _schedulerlog_completion schedulerlog"),
        ("zsh", "#compdef schedulerlog"),
        ("fish", "complete --command schedulerlog"),
    ],
)
def test_each_shell_has_a_completion_of_its_own(shell: str, line: str) -> None:
    # By the variable: ``--show-completion`` is for the shell that it finds among its parents, where it finds one.
    result = CliRunner().invoke(app, [], prog_name="schedulerlog", env={"_SCHEDULERLOG_COMPLETE": f"source_{shell}"})
    assert result.exit_code == 0
    assert line in result.stdout


def test_completion_knows_the_commands_of_a_package() -> None:
    words = {"_SCHEDULERLOG_COMPLETE": "complete_bash", "COMP_WORDS": "schedulerlog ingest ka", "COMP_CWORD": "2"}
    completed = CliRunner().invoke(app, [], prog_name="schedulerlog", env=words)
    assert completed.stdout.split() == ["kai-log"]


def test_help_imports_no_package() -> None:
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from cli.command import COMMANDS, app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {*COMMANDS, 'pydantic', 'numpy', 'rich', 'schemas'}, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_imported(name: str) -> None:
    assert load(COMMANDS[name]).get_short_help_str()


def test_a_package_that_is_absent_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["schedulerlog", "api", "serve"])
    absent = {"api": LazyCommand("", "a_package_that_is_absent.inner:app")}
    monkeypatch.setattr(command, "app", create_lazy_application("", absent))
    with pytest.raises(SystemExit) as ended:
        command.run()
    expected = "schedulerlog api needs the package a_package_that_is_absent: pip install 'schedulerlog[api]'"
    assert ended.value.code == expected
    assert capsys.readouterr().out == ""


def test_a_module_of_this_project_that_is_absent_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["schedulerlog", "api", "serve"])
    monkeypatch.setattr(command, "app", create_lazy_application("", {"api": LazyCommand("", "api.no_such:app")}))
    with pytest.raises(ModuleNotFoundError):
        command.run()


def test_a_group_of_one_command_is_a_group() -> None:
    assert hasattr(get_command(create_lazy_application("", {"one": LazyCommand("", "api.__main__:app")})), "commands")

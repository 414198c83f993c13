"""https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/: what kubectl asks of a plugin."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli.terminal.commands import QUESTIONS
from cli.terminal.kubectl import PROGRAM, app

SCRIPT = "import sys, schedulerlog; sys.argv = ['kubectl_complete-schedulerlog', *sys.argv[1:]]; schedulerlog.{}()"


def test_usage_names_kubectl() -> None:
    script = "import sys, schedulerlog as s; sys.argv = ['kubectl-schedulerlog', 'why', '--help']; s.run_kubectl()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Usage: {PROGRAM} why ")


def test_the_plugin_has_the_questions_and_no_service() -> None:
    assert "pipeline" not in CliRunner().invoke(app, ["--help"]).stdout
    assert CliRunner().invoke(app, ["pipeline"]).exit_code == 2


def test_the_plugin_installs_no_completion_which_would_take_the_place_of_kubectls() -> None:
    assert CliRunner().invoke(app, ["--install-completion"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hi"], ["history", ":4"]),
        ([""], [*QUESTIONS, ":4"]),
        (["list", "--pen"], ["--pending", ":4"]),
        (["--"], ["--help", ":4"]),
        # Nothing is known of it: kubectl lets the shell propose files.
        (["explain", ""], [":0"]),
    ],
)
def test_kubectl_completes_a_line(words: list[str], expected: list[str]) -> None:
    command = [sys.executable, "-c", SCRIPT.format("complete_kubectl"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected

"""The recording in README is the output of the command."""

from pathlib import Path

from typer.testing import CliRunner

from cli.command import app as command_app
from cli.terminal.kubectl import app
from tests.support.harness.example_api import build_caller
from tests.support.harness.golden_api import golden_api

COMMAND = "$ kubectl schedulerlog why gpu-pod-default\n"


def test_the_recording_of_the_readme_is_what_the_terminal_prints() -> None:
    with golden_api(build_caller("2-gpu-pod-default")) as url:
        words = ["why", "gpu-pod-default", "-n", "default"]
        done = CliRunner().invoke(app, words, env={"SCHEDULERLOG_API_URL": url, "COLUMNS": "80"})
    assert done.exit_code == 1
    recording = Path("README.md").read_text("utf-8").partition(COMMAND)[2].partition("```")[0]
    # README leaves out what is below the changes.
    assert recording
    beginning, ellipsis, _ = recording.partition("...\n")
    assert ellipsis
    assert done.stdout.startswith(beginning)


def test_the_log_of_the_readme_is_explained_as_it_shows() -> None:
    command, ellipsis = "$ schedulerlog explain ", "...\n"
    line, _, recording = Path("README.md").read_text("utf-8").partition(command)[2].partition("\n")
    beginning = recording.partition(ellipsis)[0]
    assert "MemoryBeyondDevice" in beginning
    done = CliRunner().invoke(command_app, ["explain", *line.split()], env={"COLUMNS": "80"})
    assert done.stdout.startswith(beginning)

"""The commands of the terminal by the API's URL, on a real topic and a real index."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import pytest
from typer.testing import CliRunner, Result

from cli.command import app
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import eventually

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def run(api: Served) -> Run:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, words, env={"SCHEDULERLOG_API_URL": str(api.client.base_url), "COLUMNS": "80"})

    return run


def test_an_attempt_of_the_index_is_found_and_explained(filling: Filling, run: Run) -> None:
    filling.index(an_attempt("terminal-a/older", started_at=NOW - timedelta(minutes=3)))
    assert run("list", "-n", "terminal-a", "-o", "name").stdout == "pod/older\n"
    assert run("history", "terminal-a/older").stdout.startswith("terminal-a/older: 1 attempt in 1 episode")
    assert run("why", "terminal-a/older").exit_code == 1
    unknown = run("why", "terminal-a/does-not-exist")
    assert (unknown.exit_code, unknown.stdout) == (3, "")


def test_a_watch_ends_when_the_pod_is_placed(filling: Filling, api: Served) -> None:
    first = an_attempt("terminal-b/pod")
    second = an_attempt("terminal-b/pod", started_at=NOW + timedelta(minutes=1), chosen="node2", bound=True)
    filling.publish(first)
    eventually(lambda: api.get_schedulerlog("terminal-b/pod").status_code == 200, "the attempt is not on the topic")
    command = [sys.executable, "-m", "schedulerlog", "watch", "terminal-b/pod", "--until-placed"]
    command += ["--api-url", str(api.client.base_url)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        assert " terminal-b/pod refused: " in watching.stdout.readline()
        filling.publish(second)
        assert " terminal-b/pod placed: " in watching.stdout.readline()
        assert watching.wait(30) == 0

import inspect
import itertools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import SimpleNamespace

import pytest
import typer
import yaml
from typer.testing import CliRunner

from cli.client.problems import Problem, Unreachable
from cli.client.transport import Transport, WatchedChange
from cli.command import app
from cli.terminal import watching
from cli.terminal.answers import end_with
from cli.terminal.commands import QUESTIONS
from cli.terminal.options import Asking
from runtime.cli.lazy_commands import LazyCommand
from schemas.json_types import Json
from tests.support.harness.golden_api import POD
from tests.unit.cli.terminal.conftest import Run

SENTENCE = "Node node5 was chosen, and another pod held its lock: llm/qwen-0, for 2 s when\nthe bind was tried.\n"


def list_examples(command: LazyCommand) -> list[str]:
    """List the lines of its help that call it."""
    module, _, name = command.import_path.partition(":")
    text = inspect.getdoc(getattr(import_module(module), name)) or ""
    return re.findall(r"^ +(schedulerlog .*)$", text, re.MULTILINE)


OF_WORKLOADS = "job/train"
"""Subject of examples that need a cluster, or a file with a Job: ``test_workloads``."""
OF_STATES = "replay"
"""Command that needs recorded states: ``test_replay``."""
EXAMPLES = [
    line
    for command in QUESTIONS.values()
    for line in list_examples(command)
    if not any(word in line for word in (OF_WORKLOADS, OF_STATES))
]
NAMES = {
    "why.html": "/dev/null",
    "hami.log": "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log",
    "pod.yaml": "examples/pods/1-gpu-pod.yaml",
    "cluster.yaml": "examples/cluster.yaml",
    "objects.yaml": "examples/cluster.yaml",
    "deepseek-0": "deepseek-5996b8569d-kgwgx",
}
"""Files and pods of the examples, and their replacements in tests."""


def test_the_first_line_is_the_answer(run: Run) -> None:
    done = run("why", POD)
    assert done.exit_code == 1
    assert done.stdout.startswith(SENTENCE)
    assert "Remedy, by waiting or an administrator" in done.stdout


def test_a_list_begins_with_its_number(run: Run) -> None:
    assert run("list", "-A").stdout.startswith("1 attempt.\n")
    output = run("list", "--pending", "-n", "llm").stdout
    assert output.startswith("1 waiting pod in namespace llm.\n")
    # A node fitted, and its bind failed: no other one is near.
    assert " lacks " not in run("list", "--pending", "-A", "-o", "wide").stdout
    workloads = run("list", "--pending", "-A", "--by", "workload").stdout
    assert workloads.startswith("1 waiting pod, 1 workload.\n")
    assert "train/Job/llama-70b can't make its pods: Error creating" in workloads
    assert run("list", "--pending", "-A", "--by", "obstacle").stdout.startswith("1 waiting pod, 1 obstacle.\n")


def test_a_node_is_shown_as_it_was(run: Run) -> None:
    output = run("node", "node3", "--at", "2026-04-22T14:00:00Z").stdout
    assert output.startswith("node3: 1 of 4 devices are free at 2026-04-22 14:00:00 UTC.\n")
    assert "HandshakeTooOld" in output


def test_a_cordoned_node_and_a_cordoned_device_are_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    amounts = {f"{what}_{end}": 0 for what in ("memory", "cores") for end in ("held_mib", "held_percent")}
    totals = {"memory_total_mib": 1, "cores_total_percent": 100, "slots_held": 0, "slots_total": 10}
    device = {"uuid": "GPU-1", "model": "A100", "healthy": True, "cordoned": True, "held_by": []} | amounts | totals
    answer: Json = {
        "node": "n1", "at": "2026-04-22T14:00:00Z", "cordoned": True, "free_devices": 0, "devices": [device],
        "pods": [], "other_pods": 0, "checks": [],
    }  # fmt: skip
    transport = SimpleNamespace(get=lambda *_: answer)
    monkeypatch.setattr(Asking, "create_transport", lambda _: transport)
    output = CliRunner().invoke(app, ["node", "n1"]).stdout
    assert output.startswith("n1 is cordoned: 0 of 1 devices are free at 2026-04-22 14:00:00 UTC.\n")
    assert "A100 cordoned" in output


def test_a_history_counts_attempts_and_episodes(run: Run) -> None:
    first = f"{POD}: 1 attempt in 1 episode, the latest refused on\nnode5.\n"
    assert run("history", POD).stdout.startswith(first)


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_examples_of_the_help_run(run: Run, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "follow", follow_once)
    for example, there in NAMES.items():
        line = line.replace(example, there)
    words = shlex.split(line.partition(" > ")[0])
    done = run(*words[1:])
    # A pod of the namespace `default` is in no golden record.
    assert done.exit_code in (0, 1, 3), done.output
    assert done.stdout
    assert not done.stderr


def follow_once(transport: Transport, path: str, query: Mapping[str, str]) -> Iterator[WatchedChange | Problem]:
    """Follow one watch, which ends with its first change, or after a second."""
    return itertools.islice(transport.stream(path, {**query, "watch": "true", "timeoutSeconds": "1"}), 1)


def test_a_watch_shows_what_waits_and_what_was_decided(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "follow", follow_once)
    listed = run("watch", "-A")
    assert f" {POD} waits: " in " ".join(listed.stdout.split())
    assert listed.exit_code == 0
    build_pod_path = run("watch", POD)
    assert f" {POD} refused: node node5 has been locked" in " ".join(build_pod_path.stdout.split())
    assert build_pod_path.exit_code == 1
    changes = [json.loads(line) for line in run("watch", "-A", "-o", "json").stdout.splitlines()]
    assert [change["type"] for change in changes] == ["ADDED"]


def test_every_command_has_examples() -> None:
    assert {name for name, command in QUESTIONS.items() if not list_examples(command)} == set()


@pytest.mark.parametrize("line", [["why", POD], ["list", "-A"], ["history", POD], ["node", "node3"]], ids=" ".join)
def test_lines_fit_80_columns_and_a_pipe_gets_no_escape_code(run: Run, line: list[str]) -> None:
    output = run(*line).stdout
    assert max(map(len, output.splitlines())) <= 80
    assert "\x1b" not in output
    assert not [row for row in output.splitlines() if row != row.rstrip()]


def test_a_pipe_gets_whole_lines(run: Run) -> None:
    assert run("why", POD, COLUMNS="").stdout.startswith(SENTENCE.replace("\nthe", " the"))


def test_answers_for_programs_are_the_answers_of_the_api(run: Run) -> None:
    output = json.loads(run("why", POD, "-o", "json").stdout)
    assert (output["state"], output["name"]) == ("refused", POD.partition("/")[2])
    assert yaml.safe_load(run("why", POD, "-o", "yaml").stdout)["sentence"] == output["sentence"]
    assert run("list", "-A", "-o", "name").stdout == f"pod/{output['name']}\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["why"], 2, "Missing argument"),
        (["why", "a/b", "-n", "c"], 2, "another namespace"),
        (["list", "--since", "yesterday"], 2, "since"),
        (["why", "x", "--api-url", "nowhere"], 2, "--api-url: not a URL"),
        (["why", "x", "--api-url", "http://127.0.0.1:1"], 5, "Connection refused"),
        (["why", "x", "--api-token-file", "/does/not/exist"], 2, "--api-token-file"),
        (["list", "-o", "xml"], 2, "xml"),
        (["list", "--api-token", "secret"], 2, "--api-token-file"),
    ],
)
def test_what_is_wrong_is_named_without_a_traceback(run: Run, words: list[str], code: int, text: str) -> None:
    done = run(*words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (code, True, ""), done.output
    assert "Traceback" not in done.output


def test_completion_knows_the_commands_and_their_options() -> None:
    words = {"_SCHEDULERLOG_COMPLETE": "complete_bash", "COMP_WORDS": "schedulerlog hist", "COMP_CWORD": "1"}
    assert CliRunner().invoke(app, [], prog_name="schedulerlog", env=words).stdout.split() == ["history"]
    words |= {"COMP_WORDS": "schedulerlog list --pen", "COMP_CWORD": "2"}
    assert CliRunner().invoke(app, [], prog_name="schedulerlog", env=words).stdout.split() == ["--pending"]


def test_a_command_starts_without_what_is_slow_to_import(golden_url: str) -> None:
    """0.2 s of CPU on this project's machines (docs/measurements.md), most of it typer with pydantic, http, rich."""
    script = (
        "import sys, schedulerlog, atexit\n"
        f"sys.argv = ['schedulerlog', 'why', '{POD}', '--api-url', '{golden_url}']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "schedulerlog.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    slow = {
        "numpy",
        "orjson",
        "httpx",
        "yaml",
        "asyncio",
        "kubernetes",
        "schemas.events",
        "starlette",
        "prometheus_client",
    }
    assert slow & set(done.stderr.split()) == set()


def test_a_cause_that_ends_with_a_question_gets_no_full_stop(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        end_with(Unreachable("refused - did you specify the right host or port?", "Is it up?"))
    assert capsys.readouterr().err == "refused - did you specify the right host or port?\nIs it up?\n"

"""``schedulerlog replay``: the first pod of the examples decided again, as docs/demo.md works it out; and a range."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.client.problems import NotAllowed, Problem
from cli.client.transport import NO_QUERY, Query
from cli.client.url import UrlTransport
from cli.command import app
from schemas.answers.replays import Recording
from schemas.json_types import Json
from tests.support.builders.recordings import ONE_AFTER_THE_OTHER
from tests.support.harness.example_api import EXAMPLES, build_caller
from tests.support.harness.golden_api import golden_api

CLUSTER = (EXAMPLES / "cluster.yaml").read_bytes()
REASONS = {"CardComputeUnitsExhausted": 1, "CardInsufficientMemory": 2, "node unregistered": 1}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with golden_api(build_caller("1-gpu-pod")) as url:
        yield url


def replay(monkeypatch: pytest.MonkeyPatch, url: str, cluster: bytes | Problem, *words: str) -> Result:
    """Replay on this file; the index of a test has no states."""
    get_others = UrlTransport.get_text

    def get_text(transport: UrlTransport, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        return cluster if path.endswith("/cluster-file") else get_others(transport, path, query)

    monkeypatch.setattr(UrlTransport, "get_text", get_text)
    return CliRunner().invoke(app, ["replay", "default/gpu-pod", "--api-url", url, *words], env={"COLUMNS": "200"})


def test_the_same_devices_give_the_same_result(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    done = replay(monkeypatch, url, CLUSTER)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "default/gpu-pod was tried at 2026-11-23 09:30:00 UTC. The replay has the same result."
    assert lines[3].split() == ["chosen", "node", "node9", "node9"]
    assert lines[4].split() == ["nodes", "that", "fit", "6", "6"]
    answer = json.loads(replay(monkeypatch, url, CLUSTER, "-o", "json").stdout)
    assert answer["recorded"] == answer["replayed"] == {"chosen": "node9", "fit_nodes": 6, "reasons": REASONS}


def test_other_devices_are_a_difference(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    others = [item for item in yaml.safe_load_all(CLUSTER) if "node9" not in json.dumps(item)]
    done = replay(monkeypatch, url, yaml.safe_dump_all(others).encode())
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    assert lines[0].endswith("The replay differs from the record: chosen node, nodes that fit.")
    # The next best score of docs/demo.md, 11.58.
    assert lines[3].split() == ["chosen", "node", "node9", "node5"]
    assert lines[4].split() == ["nodes", "that", "fit", "6", "5"]


def test_a_caller_without_the_right_to_nodes_reads_why(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    done = replay(monkeypatch, url, NotAllowed("you may not list nodes", "Ask for the right."))
    assert (done.exit_code, "you may not list nodes" in done.stderr) == (4, True)


def replay_range(monkeypatch: pytest.MonkeyPatch, recording: Recording, *words: str) -> Result:
    """Replay this recording of the last week."""

    def get(_: UrlTransport, path: str, query: Query = NO_QUERY) -> Json:
        assert (path, query) == ("/recording", {"since": "7d"})
        answer: Json = recording.model_dump(mode="json")
        return answer

    monkeypatch.setattr(UrlTransport, "get", get)
    command = ["replay", "--since", "7d", "--api-url", "http://127.0.0.1:1", *words]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


def test_a_range_is_replayed_with_a_node_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hours are those of `test_replay` of the engine, worked out by hand there."""
    done = replay_range(monkeypatch, ONE_AFTER_THE_OTHER, "--add-node", "like:n1=1")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.stdout.startswith("With 1 more node like n1, pods would have waited 1.0 GPU-hours instead of 5.5: ")
    assert ["recorded", "3", "0", "5.5"] in lines
    assert ["with", "the", "change", "3", "0", "1.0"] in lines
    assert ["llm/Pod/c", "1", "1", "→", "1", "4.0", "→", "1.0"] in lines
    assert "Wait longer" not in done.stdout
    answer = json.loads(replay_range(monkeypatch, ONE_AFTER_THE_OTHER, "--split", "1", "-o", "json").stdout)
    assert answer["changed"] == answer["unchanged"]


def test_a_range_that_something_else_decided_gets_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [
        pod.model_copy(update={"bound_at": pod.bound_at and pod.bound_at + timedelta(hours=3)})
        for pod in ONE_AFTER_THE_OTHER.pods
    ]
    recording = ONE_AFTER_THE_OTHER.model_copy(update={"pods": late})
    done = replay_range(monkeypatch, recording, "--split", "4")
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("The replay without a change is not like the record (0 of 3 pods agree)")
    assert "with the change" not in done.stdout
    # They left before they were bound: nothing holds the node, and in the replay each starts when it comes.
    rows = [line.split() for line in done.stdout.partition("Not like the record")[2].splitlines() if "llm/" in line]
    assert [(row[0], row[2], row[4]) for row in rows] == [
        ("llm/c", "08:00:00", "01:00:00"),
        ("llm/b", "05:00:00", "00:30:00"),
        ("llm/a", "03:00:00", "00:00:00"),
    ]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ([], "name either a pod or, with --since, a range of time"),
        (["llm/a", "--since", "7d"], "name either a pod or, with --since, a range of time"),
        (["llm/a", "--split", "4"], "--until and changes are about a range"),
        (["--since", "7d"], "a range is replayed under a change"),
        (["--since", "7d", "--node-policy", "pack"], "--node-policy: 'pack' is not known, write binpack or spread"),
        (["--since", "7d", "--device-policy", "binpack,far"], "--device-policy: 'far' is not known"),
        (["--since", "7d", "--add-node", "n1=0"], "write like:NODE=COUNT"),
    ],
)
def test_a_mistake_of_the_command_line_is_named_with_what_to_write(words: list[str], cause: str) -> None:
    done = CliRunner().invoke(app, ["replay", *words, "--api-url", "http://127.0.0.1:1"])
    assert (done.exit_code, cause in done.stderr) == (2, True), done.output


def test_a_node_that_was_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    done = replay_range(monkeypatch, ONE_AFTER_THE_OTHER, "--add-node", "like:n7=1")
    assert (done.exit_code, "--add-node: the cluster has no node n7" in done.stderr) == (2, True), done.output

"""``schedulerlog replay``: the examples' first pod decided again; docs/demo.md works its figures out by hand."""

import json
from collections.abc import Iterator

import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.client.problems import NotAllowed, Problem
from cli.client.transport import NO_QUERY, Query
from cli.client.url import UrlTransport
from cli.command import app
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

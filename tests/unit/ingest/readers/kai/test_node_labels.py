"""Placements outside the pool that the scheduler serves, by the nodes' label; and pods that no node was tried for."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ingest.__main__ import app
from ingest.commands.logs import create_kai_reader
from ingest.readers.kai import KaiLog
from ingest.readers.kai.node_labels import POOL_LABEL, NodePools, parse_pool_labels
from tests.support.builders.kai_lines import list_findings, print_lines, read, summarize_attempts

UPDATER = "status_updater/default_status_updater.go"
NAMED = f"{UPDATER}: Updating pod group scheduling condition for team-a/pg to (UnschedulableOnNodePool,nodepool=a100)"
BIND = (
    "cache/cache.go: Creating bind request for task <team-a/infer-0> to node <gpu-0>"
    " gpuGroup: <[g]>, requires: <1> GPUs"
)


def make_node_list(**labels: str) -> bytes:
    metadata = {"name": "gpu-0", "labels": {"nvidia.com/gpu.memory": "40960", **labels}}
    return json.dumps({"items": [{"metadata": metadata}]}).encode()


def find_in_placement(pool: str | None, *lines: str, served: str = "") -> list[str]:
    """List the findings of a placement on gpu-0, which is in ``pool``; None: the node list lacks it."""
    by_node = {} if pool is None else {"gpu-0": pool}
    reader = KaiLog(pools=NodePools(by_node, served=served))
    return [finding.finding for finding in list_findings(read(print_lines(*lines, BIND), reader))]


def test_a_node_of_another_pool_is_a_finding_with_what_shows_it() -> None:
    reader = KaiLog(pools=NodePools({"gpu-0": "t4"}))
    (finding,) = list_findings(read(print_lines(BIND, NAMED), reader))
    assert (finding.finding, finding.node) == ("OutsidePool", "gpu-0")
    assert finding.evidence[1] == "gpu-0 has kai.scheduler/node-pool=t4; the scheduler serves the pool a100"


@pytest.mark.parametrize(("pool", "lines", "served", "expected"), [
    ("a100", [NAMED], "", []),
    ("t4", [], "", []),  # no line names the scheduler's pool
    (None, [NAMED], "", []),  # the node list does not have the node
    ("", [NAMED], "", ["OutsidePool"]),  # a node without the label is in no pool
    ("t4", [], "a100", ["OutsidePool"]),
    ("a100", [NAMED.replace("a100", "t4")], "a100", []),  # what the operator says counts for more
])  # fmt: skip
def test_a_finding_needs_both_pools(pool: str | None, lines: list[str], served: str, expected: list[str]) -> None:
    assert find_in_placement(pool, *lines, served=served) == expected


def test_the_pool_of_each_node_is_its_label() -> None:
    assert parse_pool_labels(make_node_list(**{POOL_LABEL: "t4"}), POOL_LABEL) == {"gpu-0": "t4"}
    assert parse_pool_labels(make_node_list(pool="t4"), "pool") == {"gpu-0": "t4"}
    assert parse_pool_labels(make_node_list(), POOL_LABEL) == {"gpu-0": ""}


def test_the_command_takes_the_pool_and_the_label(tmp_path: Path) -> None:
    node_list = tmp_path / "nodes.json"
    node_list.write_bytes(make_node_list(pool="t4"))
    reader = create_kai_reader("default", node_list, "a100", "pool")
    assert [finding.finding for finding in list_findings(read(print_lines(BIND), reader))] == ["OutsidePool"]
    arguments = ["kai-log", str(node_list), "--node-pool", "a100"]
    refused = CliRunner().invoke(app, arguments)
    assert (refused.exit_code, "--node-pool: give --nodes too" in refused.stderr) == (2, True)


def test_a_pre_predicate_that_fails_is_the_error_of_the_attempt() -> None:
    lines = print_lines(
        "common/allocate.go: Looking for best node for task - Task: <team-a/train-0>, init requested: <GPU: 4>.",
        "framework/session_plugins.go: Failed to run Pre-Predicate on task train-0",
    )
    (attempt,) = summarize_attempts(read(lines))
    assert (attempt.status, attempt.error) == ("failed", "Failed to run Pre-Predicate on task train-0")


def test_the_fit_error_that_follows_names_the_pre_predicate_that_refused() -> None:
    why = (
        "Scheduling conditions were not met for pod team-a/train-0:\n"
        "MaxNodePoolResources: The pod team-a/train-0 requires GPU: 4."
    )
    lines = print_lines(
        f"{UPDATER}: setting message for task: train-0, {why}",
        f"{UPDATER}: Updating pod condition for team-a/train-0 to (PodScheduled==False)",
    )
    (attempt,) = summarize_attempts(read(lines))
    assert (attempt.status, attempt.error) == ("failed", why)

"""``drain``, ``defragment`` and ``buy`` on files: the examples' cluster, and one whose pods are made again."""

import json
from pathlib import Path

import orjson
import pytest

from tests.support.builders.capacity import a_budget, a_holder, a_replica
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod
from tests.unit.cli.terminal.conftest import Run

CLUSTER = ("--cluster", "examples/cluster.yaml")


def test_a_drain_names_where_each_pod_goes_and_why_others_wait(run: Run) -> None:
    done = run("drain", "node9", *CLUSTER)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "A drain of node9 moves 1 pod; 1 would wait.")
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[3:] if line}
    assert "node6" in rows["default/notebook-4"]
    assert "waits" in rows["batch/solver-1"]
    plan = json.loads(run("drain", "node9", *CLUSTER, "-o", "json").stdout)
    reasons = {pod["name"]: pod["reason"] for pod in plan["pods"]}
    assert "lack memory: 41,912 MiB asked" in reasons["solver-1"]["en"]
    assert reasons["notebook-4"] is None
    assert "  kubectl drain node9 --ignore-daemonsets --force" in done.stdout.splitlines()
    assert "Disruption budgets are not known here" in done.stdout


def test_a_drain_of_an_unknown_node_names_the_next_step(run: Run) -> None:
    done = run("drain", "node77", *CLUSTER)
    assert (done.exit_code, "lists its nodes" in done.stderr) == (2, True)


@pytest.fixture
def fragmented(tmp_path: Path) -> str:
    """File of a cluster in which each of two nodes has one of its two devices in use; two pods of two devices wait."""
    waiting = [a_gpu_pod(f"wide-{number}", gpu=2) | {"status": {"phase": "Pending"}} for number in range(2)]
    objects = [a_gpu_node("n1", 2), a_gpu_node("n2", 2), a_replica("a", "n1", {0: (9000, 0)}),
               a_holder("b", "n2", {0: (9000, 0)}), a_budget("web", "web", 1), *waiting]  # fmt: skip
    file = tmp_path / "cluster.json"
    file.write_bytes(orjson.dumps({"kind": "List", "items": objects}))
    return str(file)


def test_the_moves_after_which_a_pod_starts_have_their_commands(run: Run, fragmented: str) -> None:
    done = run("defragment", "--gpu", "2", "--cluster", fragmented, COLUMNS="200")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[:2] == ["It starts after 1 pod has moved.", "Fewer moves do not do."]
    assert lines[3] == "shape starts on n1 after these have left it"
    assert lines[5].split()[:4] == ["default/a", "1", "ReplicaSet/web", "n2"]
    assert "Disruption budgets are not known here" not in done.stdout
    assert (lines[8], lines[-1]) == ("  kubectl cordon n1", "  kubectl uncordon n1")
    answer = json.loads(run("defragment", "--gpu", "2", "--cluster", fragmented, "-o", "json").stdout)
    assert [move["budgets"] for move in answer["nodes"][0]["moves"]] == [["default/web"]]
    assert run("defragment", "--gpu", "2", "--cluster", fragmented, "-o", "name").stdout == "pod/a\n"


def test_what_is_not_moved_is_named_where_no_plan_is_found(run: Run) -> None:
    done = run("defragment", "--gpu", "8", *CLUSTER)
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("No plan that moves up to 4 pods of one node lets it start.")
    assert "Pods that nothing makes again, of DaemonSets" in " ".join(done.stdout.split())


def test_a_purchase_names_the_nodes_and_the_pods_that_start(run: Run, fragmented: str) -> None:
    done = run("buy", "--cluster", fragmented, COLUMNS="200")
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "2 nodes like n1 let 2 of 2 waiting pods start."
    assert lines[3].split() == ["2", "n1", "NVIDIA", "A10", "2", "default/wide-0,", "default/wide-1"]


def test_a_cluster_in_which_nothing_waits_needs_no_node(run: Run) -> None:
    done = run("buy", *CLUSTER)
    assert (done.exit_code, done.stdout) == (0, "No pod waits.\n")

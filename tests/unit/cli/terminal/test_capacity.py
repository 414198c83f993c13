"""``fits`` on the examples' cluster, whose figures docs/demo.md works out."""

import json

from tests.unit.cli.terminal.conftest import Run

CLUSTER = ("--cluster", "examples/cluster.yaml")


def test_pods_of_a_shape_are_counted_with_what_lets_more_start(run: Run) -> None:
    words = ("fits", "--gpu", "4", "--gpumem", "20000", "--count", "20", "--add-node", "like:node3=2", *CLUSTER)
    done = run(*words)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "11 of 20 start now, on 4 nodes."
    assert "  2 nodes like node10 (NVIDIA H100 80GB HBM3), which take 8 each." in lines
    answer = json.loads(run(*words, "-o", "json").stdout)
    assert (answer["starts"], answer["capacity"], answer["added"]) == (11, 11, ["node3-added-1", "node3-added-2"])


def test_pods_that_all_start_are_a_success(run: Run) -> None:
    done = run("fits", "-f", "examples/pods/1-gpu-pod.yaml", *CLUSTER)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("It starts now; there is room for ")


def test_a_question_without_a_pod_or_with_two_is_a_mistake(run: Run) -> None:
    for words in ((), ("--gpu", "1", "-f", "examples/pods/1-gpu-pod.yaml")):
        done = run("fits", *words, *CLUSTER)
        assert (done.exit_code, "--gpu or --filename: give" in done.stderr) == (2, True)


def test_an_addition_that_is_none_is_a_mistake(run: Run) -> None:
    for text, message in (("like:node77", "the cluster has no node node77"), ("x=y", "write like:NODE=COUNT")):
        done = run("fits", "--gpu", "1", "--add-node", text, *CLUSTER)
        assert (done.exit_code, message in done.stderr) == (2, True)

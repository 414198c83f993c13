"""The pods of the examples; docs/demo.md works out what must become of each."""

import json

import pytest

from tests.unit.terminal.conftest import Run

CLUSTER = "examples/cluster.yaml"


def simulated(run: Run, pod: str, *words: str) -> tuple[int, str]:
    done = run("simulate", "-f", f"examples/pods/{pod}.yaml", "--cluster", CLUSTER, *words)
    return done.exit_code, done.stdout


def test_a_pod_that_fits_is_answered_with_its_node(run: Run) -> None:
    code, shown = simulated(run, "1-gpu-pod")
    assert (code, shown.splitlines()[0]) == (0, "It would go to node node9, one of 6 where it fits.")
    answer = json.loads(simulated(run, "1-gpu-pod", "-o", "json")[1])
    with open("examples/expected/1-gpu-pod.json") as expected:  # noqa: PTH123
        assert answer["filter"] == json.load(expected)["filter"]


def test_a_pod_that_fits_nowhere_is_answered_with_what_would_help(run: Run) -> None:
    code, shown = simulated(run, "2-gpu-pod-default")
    assert (code, "nvidia.com/gpucores for 25 instead of 30" in shown) == (1, True)


def test_the_recorded_cluster_is_asked_of_the_api(run: Run) -> None:
    done = run("simulate", "-f", "examples/pods/1-gpu-pod.yaml")
    # The golden records have the state of one node with one device.
    assert (done.exit_code, "The only node has fewer devices" in done.stdout) == (1, True), done.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-f", CLUSTER, "--cluster", CLUSTER], "describes 16 pods"),
        (["-f", "README.md", "--cluster", CLUSTER], "README.md:"),
        (["-f", "/does/not/exist", "--cluster", CLUSTER], "--filename: /does/not/exist: No such file"),
        (["-f", "examples/pods/1-gpu-pod.yaml", "--cluster", "/none"], "--cluster: /none: No such file"),
        (["-f", "examples/pods/1-gpu-pod.yaml", "--at", "tomorrow"], "at"),
    ],
)
def test_a_file_that_is_wrong_is_named(run: Run, words: list[str], text: str) -> None:
    done = run("simulate", *words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (2, True, ""), done.output

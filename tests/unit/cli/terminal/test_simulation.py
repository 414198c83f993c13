"""The pods of the examples; docs/demo.md works out what must become of each."""

import json
from pathlib import Path

import pytest

from cli.client.url import UrlTransport
from tests.unit.cli.terminal.conftest import Run

CLUSTER = "examples/cluster.yaml"


def simulate_pod(run: Run, pod: str, *words: str) -> tuple[int, str]:
    done = run("simulate", "-f", f"examples/pods/{pod}.yaml", "--cluster", CLUSTER, *words)
    return done.exit_code, done.stdout


def test_a_pod_that_fits_is_answered_with_its_node(run: Run) -> None:
    code, output = simulate_pod(run, "1-gpu-pod")
    assert (code, output.splitlines()[0]) == (0, "It would go to node node9, one of 6 where it fits.")
    answer = json.loads(simulate_pod(run, "1-gpu-pod", "-o", "json")[1])
    with open("examples/expected/1-gpu-pod.json") as expected:  # noqa: PTH123
        assert answer["schedulerlog"]["filter"] == json.load(expected)["filter"]


def test_a_pod_that_fits_nowhere_is_answered_with_what_would_help(run: Run) -> None:
    code, output = simulate_pod(run, "2-gpu-pod-default")
    assert code == 1
    assert "Lower nvidia.com/gpucores of ubuntu-container from 30 to 25" in " ".join(output.split())


def test_a_cluster_is_a_folder_of_files_too(run: Run, tmp_path: Path) -> None:
    node = (
        "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}"
    )
    for name in ("n1", "n2"):
        (tmp_path / f"{name}.yaml").write_text(node % name)
    (tmp_path / "notes.txt").write_text("no object")
    pod = tmp_path.parent / "folder-pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}]}}")
    done = run("simulate", "-f", str(pod), "--cluster", str(tmp_path))
    assert (done.exit_code, "It fits on 2 of 2 nodes: n1, n2" in done.stdout) == (0, True), done.output
    (tmp_path / "n2.yaml").write_text("a: [")
    broken = run("simulate", "-f", str(pod), "--cluster", str(tmp_path))
    assert (broken.exit_code, "n2.yaml:" in broken.output) == (2, True), broken.output


def test_a_folder_without_objects_is_a_mistake(run: Run, tmp_path: Path) -> None:
    done = run("simulate", "-f", "examples/pods/1-gpu-pod.yaml", "--cluster", str(tmp_path))
    assert (done.exit_code, "has no file that ends in .json, .yaml, .yml" in done.output) == (2, True), done.output


def test_the_cluster_as_it_is_and_at_a_time_are_asked_of_the_api(run: Run) -> None:
    for words in ([], ["--at", "2h"]):
        done = run("simulate", "-f", "examples/pods/1-gpu-pod.yaml", *words)
        # The golden records have the state of one node with one device.
        assert (done.exit_code, "The only node has fewer devices" in done.stdout) == (1, True), done.output


def test_the_api_and_this_process_answer_alike(run: Run, tmp_path: Path, golden_url: str) -> None:
    """The cluster that the API decides on, as it gives it as a file, decided here: the same but times and ids."""
    recorded = UrlTransport(golden_url).get_text("/cluster-file")
    assert isinstance(recorded, bytes)
    (tmp_path / "cluster.yaml").write_bytes(recorded)
    words = ["simulate", "-f", "examples/pods/1-gpu-pod.yaml", "-o", "json"]
    answer_of_api = json.loads(run(*words).stdout)
    decided = json.loads(run(*words, "--cluster", str(tmp_path / "cluster.yaml")).stdout)
    assert decided["diagnosis"]["sentence"] == answer_of_api["diagnosis"]["sentence"]
    assert decided["schedulerlog"]["filter"] == answer_of_api["schedulerlog"]["filter"]
    assert decided["suggestions"]["items"] == answer_of_api["suggestions"]["items"]
    assert decided.keys() == answer_of_api.keys()
    assert decided["schedulerlog"].keys() == answer_of_api["schedulerlog"].keys()
    assert decided["diagnosis"].keys() == answer_of_api["diagnosis"].keys()


def test_a_pod_that_asks_for_no_device_is_judged_by_the_filters_where_nodes_are_known(run: Run, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}]}}")
    # The golden API sees no API server, and so no nodes.
    for words, begin in ([], "The pod asks for no device"), (["--cluster", CLUSTER], "It fits on 10 of 10 nodes: "):
        done = run("simulate", "-f", str(pod), *words)
        assert (done.exit_code, done.stdout.startswith(begin)) == (0, True), done.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-f", CLUSTER, "--cluster", CLUSTER], "describes 16 pods"),
        (["-f", "README.md", "--cluster", CLUSTER], "README.md:"),
        (["-f", "/does/not/exist", "--cluster", CLUSTER], "--filename: /does/not/exist: No such file"),
        (["-f", "examples/pods/1-gpu-pod.yaml", "--cluster", "/none"], "--cluster: /none: No such file"),
        (["-f", "examples/pods/1-gpu-pod.yaml", "--at", "tomorrow"], "at"),
        (["-f", "examples/pods/1-gpu-pod.yaml", "--at", "2h", "--cluster", CLUSTER], "--at:"),
        (["-f", CLUSTER], "describes 16 pods"),
    ],
)
def test_a_file_that_is_wrong_is_named(run: Run, words: list[str], text: str) -> None:
    done = run("simulate", *words)
    assert (done.exit_code, text in done.stderr, done.stdout) == (2, True, ""), done.output


def test_a_cluster_without_nodes_and_an_empty_input_have_their_own_messages(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    words = ["simulate", "-f", "examples/pods/1-gpu-pod.yaml", "--cluster", str(tmp_path / "cluster.yaml")]
    done = run(*words)
    assert (done.exit_code, "describes 0 nodes, write the output of `kubectl get nodes" in done.stderr) == (2, True)
    (tmp_path / "empty.yaml").write_text("")
    done = run("simulate", "-f", str(tmp_path / "empty.yaml"), "--cluster", "examples/cluster.yaml")
    assert (done.exit_code, "empty.yaml: describes 0 pods" in done.stderr) == (2, True), done.stderr

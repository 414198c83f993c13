"""``explain PATH job/NAME`` on a file of objects, and the forms of its answer."""

import json
from pathlib import Path

import pytest

from cli.terminal.options import Asking
from schemas.json_types import Json
from tests.unit.cli.terminal.conftest import Run

RESOURCES = {"requests": {"cpu": "64"}, "limits": {"cpu": "64"}}
SPEC = {"schedulerName": "default-scheduler", "containers": [{"name": "main", "image": "i", "resources": RESOURCES}]}
METADATA = {"namespace": "ml", "creationTimestamp": "2026-01-01T12:00:00Z"}
JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", **METADATA},
    "spec": {"parallelism": 2, "template": {"spec": SPEC}},
}
OWNERS = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}]
PODS: list[Json] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"train-{index}", "ownerReferences": OWNERS, **METADATA},
        "spec": SPEC,
        "status": {"phase": "Pending"},
    }
    for index in range(2)
]
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [JOB, *PODS, NODE]}))
    return str(path)


def test_a_job_is_explained_by_its_pods(run: Run, file: str) -> None:
    done = run("explain", file, "job/train", COLUMNS="200")
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Job ml/train: 2 of 2 pods wait: No node is large enough")
    assert "Lower cpu of main from 64 to 4: then it fits on n0. (you)" in done.stdout
    assert "train-0, train-1" in done.stdout
    assert [line.split("  ")[0] for line in lines if "2026-01-01 12:00:00" in line] == ["owner created", "created"]
    assert lines[-1] == "Waits for a node for 0s."


def test_the_answer_for_programs_has_the_groups(run: Run, file: str) -> None:
    answer = json.loads(run("explain", file, "job/train", "-o", "json").stdout)
    assert [(group["count"], group["obstacle"]["code"]) for group in answer["groups"]] == [(2, "ResourceNeverEnough")]
    assert run("explain", file, "ml/job/train", "-o", "name").stdout == "pod/train-0\npod/train-1\n"


def test_a_job_that_is_not_in_the_files_has_similar_names(run: Run, file: str) -> None:
    done = run("explain", file, "job/trian")
    assert done.exit_code == 3
    assert "ml/job/train" in done.stderr


def test_a_pod_of_a_file_has_its_nodes_and_its_time_line(run: Run, file: str) -> None:
    done = run("explain", file, "ml/train-0", COLUMNS="200")
    assert "Nodes: 0 of 1 would take it" in done.stdout
    assert "Insufficient cpu" in done.stdout
    assert "Waits for a node" in done.stdout


def test_a_workload_is_asked_of_the_cluster_where_no_api_is_named(
    run: Run, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: Json = json.loads(run("explain", file, "job/train", "-o", "json").stdout)
    paths: list[str] = []

    class Cluster:
        def get(self, path: str) -> Json:
            paths.append(path)
            return answer

    monkeypatch.setattr(Asking, "create_cluster_transport", lambda _: Cluster())
    done = run("why", "job/train", "-n", "ml", SCHEDULERLOG_API_URL="")
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("Job ml/train: 2 of 2 pods wait")
    assert paths[0] == "/namespaces/ml/workloads/job/train"


def test_a_pod_in_a_namespace_that_is_called_as_a_kind_is_a_pod(run: Run, tmp_path: Path) -> None:
    pod = {**PODS[0], "metadata": {"name": "alone", "namespace": "jobs", "creationTimestamp": "2026-01-01T12:00:00Z"}}
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, NODE]}))
    done = run("explain", str(path), "jobs/alone", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)["name"]) == (1, "alone")


def test_a_table_names_workloads_without_pods(run: Run, tmp_path: Path) -> None:
    objects = tmp_path / "objects.json"
    suspended = {**JOB, "spec": {**JOB["spec"], "suspend": True}}
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [suspended, NODE]}))
    outcome = run("explain", str(objects), COLUMNS="400")
    assert outcome.exit_code == 0
    assert "1 workload without any pod." in outcome.output
    assert "ml/job/train" in outcome.output
    assert f"Why one of them: schedulerlog explain {objects} job/train" in " ".join(outcome.output.split())
    (answer,) = json.loads(run("explain", str(objects), "-o", "json").output)["workloads"]
    assert (answer["name"], answer["waiting"]) == ("train", 2)


def test_a_manifest_next_to_the_events_of_its_pod_is_no_question_of_its_own(run: Run, tmp_path: Path) -> None:
    manifest = (
        "```yaml\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: ranker}\nspec:\n  replicas: 1\n"
        "  template:\n    spec:\n      containers:\n      - {name: c, image: x}\n```\n"
    )
    path = tmp_path / "issue.md"
    path.write_text(manifest + "```\nEvents:\n  Warning  FailedMount  3s  kubelet  Unable to attach volumes\n```\n")
    done = run("explain", str(path))
    assert "NotFromCluster" not in done.stdout
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("default/pod"))
    # The kubelet that reports is not named.
    assert row[2] == "–"
    path.write_text(manifest)
    assert "NotFromCluster" in run("explain", str(path)).stdout

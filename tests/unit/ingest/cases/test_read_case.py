"""Files, folders and archives of objects and logs become one case."""

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from cli.command import app
from ingest.cases.answers import diagnose_pods, select_pods
from ingest.cases.read_case import read_case, read_case_text
from ingest.errors import MistakeError
from tests.support.builders.hami_lines import write_failure, write_request, write_start, write_unfit

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ml", "creationTimestamp": "2026-01-01T10:00:00Z"},
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}],
        "schedulerName": "default-scheduler",
    },
    "status": {"phase": "Pending"},
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"}},
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "p.1", "namespace": "ml"},
    "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "p"},
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
    "source": {"component": "default-scheduler"},
    "firstTimestamp": "2026-01-01T10:01:00Z",
    "lastTimestamp": "2026-01-01T10:01:00Z",
    "type": "Warning",
    "count": 1,
}


def write_json(folder: Path, name: str, *objects: object) -> Path:
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def test_a_folder_of_objects_in_many_files_is_one_case(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    write_json(tmp_path, "pods.json", POD, EVENT)
    write_json(tmp_path / "nodes", "n1.json", NODE)
    case = read_case([tmp_path])
    assert select_pods(case, "p") == ["ml/p"]
    assert case.objects.find("Node", "n1") == NODE
    (answer,) = diagnose_pods(case, ["ml/p"])
    assert (answer.attempts, answer.diagnosis.state) == (1, "refused")
    assert "cpu" in answer.diagnosis.sentence.en


def test_a_table_of_events_without_their_source_is_a_case() -> None:
    head = "LAST SEEN   TYPE      REASON             OBJECT     MESSAGE\n"
    refused = "2m          Warning   FailedScheduling   pod/p      0/2 nodes are available: 2 Insufficient cpu.\n"
    karpenter = (
        "1m          Warning   FailedScheduling   pod/p      Failed to schedule pod, incompatible with nodepool x\n"
    )
    placed = "9m          Normal    Scheduled          pod/q      Successfully assigned default/q to n1\n"
    case = read_case_text(head + refused + karpenter + placed)
    p, q = diagnose_pods(case, ["default/p", "default/q"])
    assert (p.attempts, p.diagnosis.state) == (1, "refused")
    assert p.diagnosis.obstacle
    assert p.diagnosis.obstacle.code == "InsufficientResource"
    assert (q.node, q.diagnosis.state) == ("n1", "placed")


def test_a_pod_that_is_gone_is_selected_by_its_events_if_it_is_named(tmp_path: Path) -> None:
    regarding = {"kind": "Pod", "namespace": "ml", "name": "gone"}
    preempted = {**EVENT, "metadata": {"name": "gone.1", "namespace": "ml"}, "involvedObject": regarding,
                 "reason": "Preempted", "message": "Preempted by pod 5f0e2f6c on node n1"}  # fmt: skip
    case = read_case([write_json(tmp_path, "objects.json", POD, NODE, preempted)])
    assert select_pods(case, "") == ["ml/p"]
    assert select_pods(case, "gone") == select_pods(case, "ml/gone") == ["ml/gone"]
    (answer,) = diagnose_pods(case, ["ml/gone"])
    assert answer.diagnosis.state == "rejected"
    assert "preempted" in answer.diagnosis.sentence.en
    assert select_pods(case, "n1") == []


def test_an_archive_of_objects_is_read_as_a_folder(tmp_path: Path) -> None:
    write_json(tmp_path, "pods.json", POD)
    with tarfile.open(tmp_path / "must-gather.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "pods.json", "gather/pods.json")
    assert select_pods(read_case([tmp_path / "must-gather.tar.gz"]), "") == ["ml/p"]


def test_objects_and_a_log_are_joined(tmp_path: Path) -> None:
    lines = [write_start(), write_request(1), write_unfit("n1", "NodeInsufficientDevice"), write_failure(1)]
    (tmp_path / "hami.log").write_bytes(b"\n".join(lines) + b"\n")
    write_json(tmp_path, "pods.json", POD)
    assert set(select_pods(read_case([tmp_path]), "")) == {"ml/p", "ml/trainer"}


def test_a_log_and_the_event_about_one_try_are_one_attempt(tmp_path: Path) -> None:
    """HAMi's log says why, of the node that it was offered; kube-scheduler's event has the two other nodes."""
    reason = "2/2 CardInsufficientMemory"
    lines = [write_start(seconds=0.005), write_request(1), write_unfit("n1", reason), write_failure(1)]
    log = tmp_path / "hami.log"
    log.write_bytes(b"\n".join(lines) + b"\n")
    year = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    tried = year.replace(month=11, day=21, hour=3, minute=6, second=0)
    tried = tried.replace(year=year.year - 1) if tried > year else tried
    words = "0/3 nodes are available: 1 NodeUnfitPod, 2 node(s) were unschedulable."
    event = EVENT | {
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "trainer", "uid": "uid-trainer"},
        "message": words, "firstTimestamp": f"{tried:%FT%TZ}", "lastTimestamp": f"{tried:%FT%TZ}",
        "source": {"component": "hami-scheduler"},
    }  # fmt: skip
    write_json(tmp_path, "events.json", event)
    (answer,) = diagnose_pods(read_case([tmp_path]), ["ml/trainer"])
    diagnosis = answer.diagnosis
    assert diagnosis.headline.en == "1 of 3 nodes lacks memory: 20,480 MiB asked."
    assert [(other.code, other.numbers["nodes"]) for other in diagnosis.other_obstacles] == [("NodeCordoned", 2)]


def test_a_file_that_cannot_be_read_is_a_problem_of_the_case(tmp_path: Path) -> None:
    write_json(tmp_path, "pods.json", POD)
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    case = read_case([tmp_path])
    assert select_pods(case, "") == ["ml/p"]
    assert ["notes.txt" in problem for problem in case.problems] == [True]


def test_files_about_something_else_are_one_problem_of_a_folder(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"container-{number}.log").write_text("epoch 1\n")
    write_json(tmp_path, "pods.json", POD)
    (problem,) = read_case([tmp_path]).problems
    assert problem.startswith("5 files hold neither objects nor a scheduler's log, such as ")
    assert "container-0.log" in problem


def test_files_of_an_archive_are_named_as_in_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    file = write_json(tmp_path, "pods.json", POD)
    with tarfile.open(tmp_path / "case.tgz", "w:gz") as archive:
        archive.add(file, "case/pods.json")
        archive.add(tmp_path / "notes.txt", "case/notes.txt")
    (problem,) = read_case([tmp_path / "case.tgz"]).problems
    assert problem.startswith("case/notes.txt: no line is from a scheduler")


def test_a_folder_without_anything_readable_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n")
    with pytest.raises(MistakeError, match="nor can 1 more files be read"):
        read_case([tmp_path])


def test_a_pasted_text_of_objects_is_a_case() -> None:
    assert select_pods(read_case_text(json.dumps(POD)), "ml/p") == ["ml/p"]


def test_what_only_limits_name_is_requested_as_well(tmp_path: Path) -> None:
    """The API server writes it into every pod that it stores; a pod that people wrote by hand does not have it."""
    text = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: g1}, status: {allocatable: {cpu: "8", pods: "9", nvidia.com/gpu: "2"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: train, namespace: ml, creationTimestamp: "2026-03-02T08:00:00Z"}
  spec: {schedulerName: default-scheduler, containers: [{name: main, resources: {limits: {nvidia.com/gpu: "4"}}}]}
  status:
    phase: Pending
    conditions:
    - {type: PodScheduled, status: "False", reason: Unschedulable, lastTransitionTime: "2026-03-02T08:00:01Z",
       message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}
"""
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["explain", str(path), "ml/train", "-o", "json"])
    answer = orjson.loads(done.stdout)
    assert answer["obstacle"]["code"] == "ResourceNeverEnough", done.stdout
    assert answer["comparison"]["agreement"] == "equal"

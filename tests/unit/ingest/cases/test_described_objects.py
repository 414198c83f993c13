"""Descriptions of objects of any kind, read back into their fields."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
from typer.testing import CliRunner

from cli.command import app
from ingest.cases.described_objects import parse_fields
from ingest.cases.descriptions import parse_descriptions

QUEUED = """\
Name:         job-train-1
Namespace:    nlp
Labels:       kueue.x-k8s.io/job-uid=1
Annotations:  <none>
API Version:  kueue.x-k8s.io/v1beta1
Kind:         Workload
Metadata:
  Creation Timestamp:  2026-03-04T11:00:00Z
  Owner References:
    API Version:  batch/v1
    Controller:   true
    Kind:         Job
    Name:         train
    UID:          9
Spec:
  Active:  true
  Pod Sets:
    Count:  2
    Name:   main
    Template:
      Spec:
        Containers:
          Name:  c
          Resources:
            Requests:
              amd.com/gpu:  4
              Cpu:          2
  Queue Name:  lab
Status:
  Conditions:
    Last Transition Time:  2026-03-04T11:00:01Z
    Message:               couldn't assign flavors to pod set main
    Reason:                Pending
    Status:                False
    Type:                  QuotaReserved
    Last Transition Time:  2026-03-04T11:00:02Z
    Message:               ok
    Reason:                Other
    Status:                True
    Type:                  Requeued
Events:                    <none>
"""


def test_names_in_words_become_fields_and_repeated_fields_begin_items() -> None:
    (workload,) = parse_descriptions(QUEUED, datetime(2026, 3, 4, 12, tzinfo=UTC))
    assert (workload["apiVersion"], workload["kind"]) == ("kueue.x-k8s.io/v1beta1", "Workload")
    assert workload["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "controller": True, "kind": "Job", "name": "train", "uid": 9}
    ]
    (pod_set,) = workload["spec"]["podSets"]
    (container,) = pod_set["template"]["spec"]["containers"]
    assert workload["spec"]["queueName"] == "lab"
    assert container["resources"]["requests"] == {"amd.com/gpu": 4, "cpu": 2}
    first, second = workload["status"]["conditions"]
    assert (first["type"], first["status"]) == ("QuotaReserved", "False")
    assert (second["type"], second["status"]) == ("Requeued", "True")


def test_a_wrapped_text_and_a_list_of_words_are_read() -> None:
    lines = ["Message:  a long text", "          that goes on", "Finalizers:", "  one", "  two"]
    assert parse_fields(lines) == {"message": "a long text that goes on", "finalizers": ["one", "two"]}


def test_a_workload_of_kueue_without_its_spec_waits_for_what_its_condition_says(tmp_path: Path) -> None:
    """People cut the spec off; without it no number of pods is known, which does not mean that none is wanted."""
    described = """\
Name:         job-eval-7f1aa
Namespace:    team-b
API Version:  kueue.x-k8s.io/v1beta1
Kind:         Workload
Status:
  Conditions:
    Last Transition Time:  2026-03-02T08:00:00Z
    Message:               couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue
    Reason:                Pending
    Status:                False
    Type:                  QuotaReserved
"""
    path = tmp_path / "workload.txt"
    path.write_text(described)
    done = CliRunner().invoke(app, ["explain", str(path), "workload/job-eval-7f1aa", "-o", "json"])
    answer = orjson.loads(done.stdout)
    assert (done.exit_code, answer["state"], answer["wanted"]) == (1, "waiting", None)
    (group,) = answer["groups"]
    assert group["obstacle"]["code"] == "KueueResourceUncovered"
    assert answer["sentence"]["en"].startswith("No pod was read: Kueue holds workload job-eval-7f1aa, and it can never")
    assert "memory" in answer["sentence"]["en"]

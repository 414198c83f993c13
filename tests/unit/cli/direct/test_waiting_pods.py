"""Lists of what waits on a live cluster: refused pods until they are replaced, and workloads without pods."""

from datetime import UTC, datetime
from typing import Any

from cli.direct.pod_case import LiveCase
from cli.direct.waiting_pods import list_waiting
from ingest.cases.read_case import build_case
from schemas.answers.waiting import PodsWaiting
from schemas.json_types import Json

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
SPEC = {"containers": [{"name": "c", "image": "i"}]}
REFUSED = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Pod was rejected: Allocate failed"}


def a_pod(name: str, minute: int, status: Json, owner: str = "job-1", **spec: Any) -> Json:
    metadata: Json = {
        "name": name,
        "namespace": "ml",
        "uid": name,
        "creationTimestamp": f"2026-01-01T12:{minute:02}:00Z",
    }
    metadata["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**SPEC, **spec}, "status": status}


def list_names(*objects: Json, limit: int = 200) -> list[str]:
    waiting = list_waiting(LiveCase(build_case(objects, (), NOW), None), limit)
    assert isinstance(waiting, PodsWaiting)
    assert waiting.total >= len(waiting.items)
    return [item.name for item in waiting.items]


def test_a_pod_that_its_node_refused_waits_until_its_owner_has_made_another() -> None:
    refused = a_pod("train-a", 1, REFUSED, nodeName="n1")
    other = a_pod("other-a", 5, {"phase": "Running"}, "job-2", nodeName="n1")
    assert list_names(refused, other) == ["train-a"]
    replacement = a_pod("train-b", 2, {"phase": "Running"}, nodeName="n1")
    assert list_names(refused, other, replacement) == []


def test_a_pod_that_failed_by_itself_does_not_wait() -> None:
    assert list_names(a_pod("train-a", 1, {"phase": "Failed"}, nodeName="n1")) == []


def test_a_workload_without_pods_waits_under_the_name_that_why_takes() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job",
           "metadata": {"name": "train", "namespace": "ml", "creationTimestamp": "2026-01-01T12:00:00Z"},
           "spec": {"template": {"spec": SPEC}}}  # fmt: skip
    waiting = a_pod("web-0", 1, {"phase": "Pending"})
    assert list_names(job, waiting) == ["job/train", "web-0"]
    assert list_names(job, waiting, limit=1) == ["web-0"]

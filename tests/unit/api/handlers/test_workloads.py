"""Diagnosis of a workload over HTTP: from the cluster's objects, by right, without names of other namespaces."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from api.authority.reviewer import Reviewer
from cli.terminal.kubectl import app as terminal
from schemas.json_types import Json
from tests.support.fakes.objects import FakeObjects
from tests.support.fakes.reviews import FakeReviews, Grant
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_api import golden_api

PATH = "/api/v1/namespaces/ml/workloads"
AMOUNTS = {"requests": {"cpu": "64"}, "limits": {"cpu": "64"}}
SPEC = {"schedulerName": "default-scheduler", "containers": [{"name": "main", "image": "i", "resources": AMOUNTS}]}
METADATA = {"namespace": "ml", "creationTimestamp": "2026-01-01T12:00:00Z"}
JOB: Json = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", **METADATA},
    "spec": {"parallelism": 2, "template": {"spec": SPEC}},
}  # fmt: skip
OWNERS = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}]
NODE: Json = {"metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
GROUPS: Json = {
    "groups": [
        {"name": name, "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}
        for name in ("batch", "apps")
    ]
}
HELD = "0/1 nodes are available: 1 node(s) are held by team-b/secret-7."


def an_event(message: str) -> Json:
    subject = {"kind": "Pod", "namespace": "ml", "name": "train-0"}
    return {
        "metadata": {"namespace": "ml", "name": "train-0.1"}, "regarding": subject, "reason": "FailedScheduling",
        "note": message, "type": "Warning", "eventTime": "2026-01-01T12:00:00.000000Z",
        "reportingController": "default-scheduler",
    }  # fmt: skip


def build_objects(*others: Json, job: Json = JOB) -> FakeObjects:
    """Build an API server with one node, a Job of two pods that need more than it has, and other objects."""
    pods = [
        {"metadata": {"name": f"train-{index}", "ownerReferences": OWNERS, **METADATA}, "spec": SPEC,
         "status": {"phase": "Pending"}}
        for index in range(2)
    ]  # fmt: skip
    return FakeObjects(
        {
            "/apis": GROUPS,
            "/apis/batch/v1/namespaces/ml/jobs/train": job,
            "/apis/batch/v1/jobs": {"items": [job, *others]},
            "/api/v1/namespaces/ml/pods": {"items": pods},
            "/api/v1/pods": {"items": pods},
            "/api/v1/nodes": {"items": [NODE]},
            "/apis/events.k8s.io/v1/namespaces/ml/events": {"items": [an_event(HELD)]},
        }
    )


class Guarded(Caller):
    """The API with authentication over these objects."""

    def __init__(self, objects: FakeObjects) -> None:
        self.reviews = FakeReviews()
        super().__init__(reviewer=Reviewer(self.reviews, "schedulerlog"), objects=objects, is_over_http=True)


async def test_the_pods_of_a_job_are_judged_on_the_nodes() -> None:
    response = await Caller(objects=build_objects()).get(f"{PATH}/job/train")
    answer: dict[str, Any] = response.json()
    assert response.status_code == 200, response.text
    assert (answer["cluster"], answer["kind"], answer["state"], answer["waiting"]) == (
        "default",
        "Job.batch",
        "waiting",
        2,
    )
    assert [(group["count"], group["obstacle"]["code"]) for group in answer["groups"]] == [(2, "ResourceNeverEnough")]
    assert answer["groups"][0]["diagnosis"]["cluster"] == "default"


async def test_a_job_without_pods_is_answered_too() -> None:
    suspended = {**JOB, "spec": {**JOB["spec"], "suspend": True}}
    objects = build_objects(job=suspended)
    objects.objects |= {"/api/v1/namespaces/ml/pods": {"items": []}, "/api/v1/pods": {"items": []}}
    answer = (await Caller(objects=objects).get(f"{PATH}/job/train")).json()
    assert [group["obstacle"]["code"] for group in answer["groups"]] == ["WorkloadSuspended"]


@pytest.mark.parametrize(
    ("path", "status", "error", "next_step"),
    [
        ("job/trian", 404, "job ml/trian does not exist", "Similar names: ml/train, other/trains."),
        ("joob/train", 400, "joob is not a kind of workload", "Write one of job, "),
        ("jobset/train", 404, "the cluster has no kind jobset", "`kubectl api-resources`"),
    ],
)
async def test_a_workload_that_does_not_exist_is_answered_with_the_nearest_names(
    path: str, status: int, error: str, next_step: str
) -> None:
    elsewhere = {**JOB, "metadata": {"namespace": "other", "name": "trains"}}
    response = await Caller(objects=build_objects(elsewhere)).get(f"{PATH}/{path}")
    assert (response.status_code, response.json()["error"]) == (status, error)
    assert response.json()["next"].startswith(next_step)


async def test_it_needs_the_right_to_list_the_pods_and_hides_other_namespaces() -> None:
    elsewhere = {**JOB, "metadata": {"namespace": "other", "name": "trains"}}
    api = Guarded(build_objects(elsewhere))
    pod_reader = api.reviews.build_header("reader", Grant("reader", "get", "pods", "ml", "train-0"))
    assert (await api.client.get(f"{PATH}/job/train", headers=pod_reader)).status_code == 403
    lister = api.reviews.build_header("lister", Grant("lister", "list", "pods", "ml"))
    response = await api.client.get(f"{PATH}/job/train", headers=lister)
    assert response.status_code == 200, response.text
    assert "secret-7" not in response.text
    missing = await api.client.get(f"{PATH}/job/trian", headers=lister)
    assert "ml/train" in missing.json()["next"]
    assert "other/trains" not in missing.text
    everything = api.reviews.build_header("all", Grant("all", "list", "pods"), Grant("all", "list", "pods", "ml"))
    assert "secret-7" in (await api.client.get(f"{PATH}/job/train", headers=everything)).text
    assert "other/trains" in (await api.client.get(f"{PATH}/job/trian", headers=everything)).text


async def test_without_a_connection_to_objects_the_next_step_is_the_callers_own_kubeconfig() -> None:
    response = await Caller(objects=FakeObjects(is_connected=False)).get(f"{PATH}/job/train")
    assert response.status_code == 503
    assert "schedulerlog why" in response.json()["next"]


def test_the_terminal_asks_the_api_at_the_url() -> None:
    with golden_api(Caller(objects=build_objects())) as url:
        environment = {"SCHEDULERLOG_API_URL": url, "COLUMNS": "200"}
        done = CliRunner().invoke(terminal, ["why", "job/train", "-n", "ml"], env=environment)
        document = CliRunner().invoke(terminal, ["why", "job/train", "-n", "ml", "-o", "json"], env=environment)
        wrong = CliRunner().invoke(terminal, ["why", "job/trian", "-n", "ml"], env=environment)
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("Job ml/train: 2 of 2 pods wait: No node is large enough")
    assert json.loads(document.stdout)["waiting"] == 2
    assert wrong.exit_code == 3
    assert "Similar names: ml/train." in wrong.stderr

"""Objects as they are kept in memory: what a question about another pod or node reads remains."""

from typing import Any

import pytest

from engine.snapshot import kinds
from engine.snapshot.trimming import LAST_APPLIED, trim_object

CONTAINER = {
    "name": "c",
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "ports": [{"hostPort": 80}],
    "restartPolicy": "Always",
}
STATUS = {
    "phase": "Running",
    "reason": "r",
    "message": "m",
    "startTime": "2026-01-01T00:00:00Z",
    "resources": {"requests": {"cpu": "1"}},
    "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "p-extended"},
}
DETAILS = {"conditions": [{"type": "Ready"}], "containerStatuses": [{"name": "c", "lastState": {}}]}


def trim_status(spec: dict[str, Any], status: dict[str, Any]) -> Any:
    return trim_object(kinds.POD, {"metadata": {"name": "p"}, "spec": spec, "status": status})["status"]


def test_metadata_lose_what_only_clients_and_the_api_server_read() -> None:
    metadata = {"name": "x", "labels": {"a": "b"}, "uid": "u"}
    untrimmed = {**metadata, "managedFields": [{}], "generation": 3, "selfLink": "/x"}
    assert trim_object("Deployment.apps", {"kind": "Deployment", "metadata": untrimmed, "spec": {"a": 1}}) == {
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"a": 1},
    }


def test_the_last_applied_configuration_leaves_the_other_annotations() -> None:
    metadata = {"name": "x", "annotations": {"a": "b", LAST_APPLIED: "{}"}}
    assert trim_object("Job.batch", {"metadata": metadata})["metadata"] == {"name": "x", "annotations": {"a": "b"}}


def test_containers_keep_what_they_hold_of_the_node() -> None:
    spec = {
        "initContainers": [{**CONTAINER, "env": [{"name": "A"}]}],
        "containers": [{**CONTAINER, "command": ["sleep"], "image": "i"}, {"name": "d"}],
    }
    trimmed = trim_object(kinds.POD, {"metadata": {}, "spec": spec})["spec"]
    assert trimmed == {"initContainers": [CONTAINER], "containers": [CONTAINER, {"name": "d"}]}


def test_volumes_that_every_node_has_are_left_out() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    spec = {"volumes": [{"name": "x", "configMap": {"name": "x"}}, claim, {"name": "y", "emptyDir": {}}]}
    assert trim_object(kinds.POD, {"metadata": {}, "spec": spec})["spec"] == {"volumes": [claim]}


def test_a_running_pod_keeps_no_conditions_and_containers() -> None:
    assert trim_status({"nodeName": "n1"}, STATUS | DETAILS) == STATUS


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"nodeName": "n1"}, STATUS | DETAILS | {"phase": "Pending"}),
        ({}, STATUS | DETAILS),
        ({"nodeName": "n1"}, STATUS | {"containerStatuses": [{"lastState": {"terminated": {"reason": "OOMKilled"}}}]}),
    ],
    ids=["waiting", "unbound", "restarted"],
)
def test_a_pod_that_may_have_a_problem_keeps_its_status(spec: dict[str, Any], status: dict[str, Any]) -> None:
    assert trim_status(spec, status) == status


def test_a_node_keeps_the_status_that_filters_and_the_diagnosis_read() -> None:
    status = {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"}, "conditions": [{"type": "Ready"}]}
    untrimmed = {**status, "images": [{}], "nodeInfo": {}, "addresses": [], "volumesInUse": [], "volumesAttached": []}
    assert trim_object(kinds.NODE, {"metadata": {"name": "n"}, "status": untrimmed})["status"] == status


def test_the_object_remains_as_it_was() -> None:
    pod = {
        "metadata": {"managedFields": [{}]},
        "spec": {"nodeName": "n", "containers": [{"env": []}]},
        "status": STATUS,
    }
    trim_object(kinds.POD, pod)
    assert pod["metadata"] == {"managedFields": [{}]}
    assert pod["spec"] == {"nodeName": "n", "containers": [{"env": []}]}

"""Taints of sick nodes, containers that end on their node, volumes that no provisioner makes, pods that are gone."""

import pytest

from engine.diagnosis.texts import CONDITION_TAINTS
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code

PRESSURE = "node.kubernetes.io/disk-pressure"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        # As kube-scheduler 1.33 and older write it, and as newer ones do.
        (f"0/2 nodes are available: 2 node(s) had untolerated taint {{{PRESSURE}: }}.", "NodeConditionTaint"),
        ("0/2 nodes are available: 2 node(s) had untolerated taint {pool: training}.", "TaintNotTolerated"),
        ("0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.", "NodeNotReady"),
        ("0/2 nodes are available: 2 node(s) had untolerated taint(s).", "TaintNotTolerated"),
    ],
)
def test_a_taint_that_kubernetes_sets_is_the_nodes_problem(words: str, code: str) -> None:
    assert get_code(diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words))) == code


@pytest.mark.parametrize("key", [PRESSURE, "node.cloudprovider.kubernetes.io/uninitialized"])
def test_the_taint_of_a_node_is_named(key: str) -> None:
    words = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    diagnosis = diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words), a_node("n-1", taint=key))
    assert get_code(diagnosis) == "NodeConditionTaint"
    assert key in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts == ["administrator", "wait"]
    assert key.startswith(CONDITION_TAINTS)


def a_pod_on_node(phase: str, container: Json) -> Json:
    status = {"phase": phase, "startTime": "2026-11-24T08:00:05Z", "containerStatuses": [{"name": "main", **container}]}
    return a_pod(spec={"nodeName": "n-4"}, status=status)


def test_a_container_that_could_not_be_started_is_not_merely_placed() -> None:
    words = "failed to create shim task: nvidia-container-cli: nvml error: driver not loaded"
    ended = {"terminated": {"exitCode": 128, "reason": "StartError", "message": words}}
    waits = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended, "restartCount": 5}
    diagnosis = diagnose_case(a_pod_on_node("Running", waits))
    assert (diagnosis.state, get_code(diagnosis)) == ("placed", "ToolkitFailed")
    assert words in diagnosis.sentence.en
    assert "exit code 128" in diagnosis.sentence.en


def test_a_container_that_ended_by_itself_is_not_the_nodes_fault() -> None:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-11-24T08:01:00Z"}}
    waits = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended, "restartCount": 3}
    diagnosis = diagnose_case(a_pod_on_node("Running", waits))
    assert get_code(diagnosis) == "ContainerEnds"
    assert "exit code 137, OOMKilled, started again 3 times" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "kubectl logs -n lab job-0 --previous" in diagnosis.obstacle.remedy.en


def test_a_pod_that_runs_is_placed() -> None:
    diagnosis = diagnose_case(a_pod_on_node("Running", {"state": {"running": {"startedAt": "2026-11-24T08:01:00Z"}}}))
    assert (diagnosis.state, diagnosis.obstacle) == ("placed", None)


def a_claim() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "lab", "name": "scratch"},
        "spec": {"storageClassName": "fast"},
        "status": {"phase": "Pending"},
    }


def test_a_provisioner_that_fails_is_quoted() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "scratch"}}]
    storage_class = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    words = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    pod = a_pod(refusal=words, spec={"volumes": volumes})
    failure = "rpc error: code = ResourceExhausted desc = quota of disks exceeded"
    event = an_event("ProvisioningFailed", failure, pod="scratch", kind="PersistentVolumeClaim", reporter="csi.example")
    diagnosis = diagnose_case(pod, an_event("FailedScheduling", words), a_claim(), storage_class, event)
    assert get_code(diagnosis) == "ClaimUnbound"
    assert diagnosis.sentence.en == (
        f"A PersistentVolumeClaim of the pod has no volume: scratch is Pending; its provisioner says: {failure}."
    )
    # Without such words a claim of this class waits for its pod.
    assert get_code(diagnose_case(pod, an_event("FailedScheduling", words), a_claim(), storage_class)) == "ChoiceFailed"


def test_nodes_that_are_full_of_volumes_reach_them() -> None:
    words = "0/1 nodes are available: 1 node(s) exceed max volume count."
    assert get_code(diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words))) == "VolumeLimit"

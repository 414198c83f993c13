"""The branches about the pod and its cluster, on objects that a real API server (Kubernetes 1.34) gave.

``cases/control_plane.json`` was recorded in tests/integration/kubernetes/test_diagnosis.py, where the real
kube-scheduler had refused the pods; three nodes, one tainted, one cordoned. What a test changes of an object, it says.
"""

from copy import deepcopy
from typing import Any

import pytest

from engine.diagnosis.tree import diagnose
from runtime.kubernetes.errors import KubeApiError
from schemas.answers.diagnosis import Diagnosis
from tests.support.builders.recorded_cluster import EVENTS, HAMI, NAMESPACE, PODS, RECORDED, build_facts, build_objects
from tests.support.fakes.objects import FakeObjects


def answer(name: str, **more: Any) -> Diagnosis:
    return diagnose(build_facts(name, **more))


def get_code(diagnosis: Diagnosis) -> str:
    assert diagnosis.obstacle
    return diagnosis.obstacle.code


def test_gates_are_named() -> None:
    diagnosis = answer("gated")
    assert (diagnosis.state, get_code(diagnosis)) == ("gated", "SchedulingGated")
    assert diagnosis.sentence.en == "2 scheduling gates hold the pod back: example.com/quota, example.com/topology."
    assert diagnosis.sentence.zh == "2 个调度门控挡住了 Pod：example.com/quota、example.com/topology。"
    # Nothing further is asked: no scheduler looks at such a pod.
    assert [step.step for step in diagnosis.steps] == ["PodExists", "StillWaits", "FreeOfGates"]


def test_a_misspelt_scheduler_is_not_among_those_that_are_known() -> None:
    diagnosis = answer("misspelt", schedulers=[HAMI])
    assert diagnosis.sentence.en == (
        "The pod names the scheduler hami-shceduler, and nothing is known of a scheduler of this name; known are "
        "default-scheduler, hami-scheduler."
    )
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts == ["you"]


def test_where_no_source_reports_schedulers_a_new_pod_is_waited_for_and_an_old_one_is_not() -> None:
    assert get_code(answer("misspelt", schedulers=[])) == "NotYetSeen"
    diagnosis = answer("misspelt", schedulers=[], seconds=600)
    assert diagnosis.sentence.en == "hami-shceduler has not looked at the pod in the 10 min since it was made."


def test_a_scheduler_that_has_stopped_deciding_is_named_with_when_it_last_did() -> None:
    silent = HAMI._replace(name="hami-shceduler")
    diagnosis = answer("misspelt", schedulers=[silent], seconds=600)
    assert get_code(diagnosis) == "SchedulerSilent"
    assert diagnosis.sentence.en == (
        "hami-shceduler has not looked at the pod in the 10 min since it was made; it last decided about a pod "
        "30 min ago."
    )
    assert diagnosis.sentence.zh == "Pod 创建 10 分钟以来，hami-shceduler 还没有处理过它；它上一次做决定是 30 分钟前。"


def test_a_pod_with_devices_that_the_webhook_passed_by() -> None:
    """The recorded pod with `nvidia.com/gpumem`, and the name that Kubernetes gives where nothing else is written."""
    pod = deepcopy(RECORDED["misspelt"])
    pod["spec"]["schedulerName"] = "default-scheduler"
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "8000"}}
    diagnosis = answer("misspelt", api=build_objects(misspelt=pod), schedulers=[HAMI])
    assert get_code(diagnosis) == "WebhookNotCalled"
    assert diagnosis.sentence.en == (
        "The pod asks for 2 devices and names default-scheduler, which does not assign devices: the webhook that would "
        "have written hami-scheduler was not called."
    )


def test_a_missing_claim_is_named() -> None:
    diagnosis = answer("no-claim")
    assert (diagnosis.state, diagnosis.sentence.en) == (
        "refused", "The pod names a PersistentVolumeClaim that does not exist: missing.",
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "code"), [("Immediate", "ClaimUnbound"), ("WaitForFirstConsumer", None)])
def test_a_claim_that_waits_for_its_pod_is_no_obstacle(mode: str, code: str | None) -> None:
    """A claim as the API server's documentation has it, of a class with either mode."""
    api = build_objects()
    metadata = {"namespace": NAMESPACE, "name": "missing"}
    claim = {"metadata": metadata, "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
    api.objects[f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/missing"] = claim
    storage_class = {"metadata": {"name": "fast"}, "volumeBindingMode": mode}
    api.objects["/apis/storage.k8s.io/v1/storageclasses/fast"] = storage_class
    diagnosis = answer("no-claim", api=api)
    assert (get_code(diagnosis) == "ClaimUnbound") is (code is not None)
    if code:
        assert diagnosis.sentence.en == "A PersistentVolumeClaim of the pod has no volume: missing is Pending."


def test_of_the_nodes_that_the_pod_selects_the_closed_ones_are_the_obstacle() -> None:
    assert answer("tainted").sentence.en == (
        "The only node that the pod selects has a taint that the pod does not tolerate: gpu=only:NoSchedule."
    )
    diagnosis = answer("cordoned")
    assert diagnosis.sentence.en == "The only node that the pod selects is cordoned."
    assert diagnosis.obstacle
    assert "kubectl uncordon test-diagnosis-cordoned" in diagnosis.obstacle.remedy.en


def test_a_selector_that_no_node_has_is_the_obstacle_whatever_else_closes_nodes() -> None:
    diagnosis = answer("affinity")
    assert diagnosis.sentence.en == "3 of 3 nodes do not match the pod's node selector or affinity."
    assert diagnosis.other_obstacles == []


def test_a_node_that_is_not_ready() -> None:
    """The recorded node that is free, with the taint that Kubernetes puts on nodes that stop reporting."""
    api = build_objects()
    (node,) = [item for item in api.objects["/api/v1/nodes"]["items"] if item["metadata"]["name"].endswith("-free")]
    node["spec"]["taints"] = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    pod = deepcopy(RECORDED["tainted"])
    pod["spec"]["nodeSelector"] = {"here": "test-diagnosis-free"}
    assert get_code(answer("tainted", api=_with(api, "tainted", pod))) == "NodeNotReady"


def _with(api: FakeObjects, name: str, pod: dict[str, Any]) -> FakeObjects:
    api.objects[f"{PODS}/{name}"] = pod
    return api


def test_the_schedulers_own_words_are_the_answer_where_the_nodes_are_open() -> None:
    """The recorded pod that kube-scheduler refused for its claim, without the claim: one node is open to it."""
    pod = deepcopy(RECORDED["no-claim"])
    pod["spec"]["volumes"] = []
    diagnosis = answer("no-claim", api=build_objects(**{"no-claim": pod}))
    assert get_code(diagnosis) == "SchedulerFoundNone"
    assert diagnosis.sentence.en == (
        "plain looked at the pod and found no node: 0/3 nodes are available: "
        'persistentvolumeclaim "missing" not found. not found.'
    )


def test_a_quota_that_let_no_pod_be_made() -> None:
    diagnosis = answer("train-x")
    assert (diagnosis.state, get_code(diagnosis)) == ("missing", "QuotaExceeded")
    assert diagnosis.sentence.en == (
        "ReplicaSet/train could not make the pod: the API server refuses it, because a quota of namespace "
        "test-diagnosis would be exceeded; of requests.nvidia.com/gpu, 0 of 4 are used."
    )


def test_an_owner_that_was_refused_for_another_reason() -> None:
    """The recorded event with the words of a webhook in its place."""
    api = build_objects()
    for event in api.objects[EVENTS]["items"]:
        if event["reason"] == "FailedCreate":
            event["note"] = 'Error creating: admission webhook "vgpu.hami.io" denied the request: pod has node assigned'
    diagnosis = answer("train-x", api=api)
    assert get_code(diagnosis) == "PodDeniedByHami"
    assert diagnosis.sentence.en == (
        "ReplicaSet/train could not make the pod, because HAMi's webhook denies it: Error creating: "
        'admission webhook "vgpu.hami.io" denied the request: pod has node assigned.'
    )


def test_a_pod_that_does_not_exist() -> None:
    diagnosis = answer("gone")
    assert (diagnosis.state, diagnosis.sentence.en) == ("missing", "Pod test-diagnosis/gone does not exist.")


def test_a_placed_pod_has_no_obstacle_and_one_that_its_kubelet_refuses_has() -> None:
    """The recorded pod is Pending on its node, with a kubelet's event as docs/sources-kube-events.md quotes it."""
    assert answer("placed").sentence.en == "The pod is on node test-diagnosis-free."
    pod = deepcopy(RECORDED["placed"])
    pod["status"]["phase"] = "Pending"
    api = _with(build_objects(), "placed", pod)
    api.objects[EVENTS]["items"].append(
        {
            "metadata": {"name": "placed.1"}, "type": "Warning",
            "regarding": {"kind": "Pod", "namespace": NAMESPACE, "name": "placed"},
            "reason": "UnexpectedAdmissionError", "reportingController": "kubelet",
            "note": "Allocate failed due to no binding pod found", "eventTime": "2026-11-23T07:22:30.000000Z",
        }
    )  # fmt: skip
    diagnosis = answer("placed", api=api)
    assert get_code(diagnosis) == "KubeletRefused"
    assert "test-diagnosis-free, which can't start it: " in diagnosis.sentence.en
    pod["metadata"]["annotations"] = {"hami.io/bind-phase": "failed"}
    assert get_code(answer("placed", api=_with(build_objects(), "placed", pod))) == "AllocationFailed"


def test_a_pod_that_is_being_deleted_needs_no_node() -> None:
    pod = deepcopy(RECORDED["cordoned"])
    pod["metadata"]["deletionTimestamp"] = "2026-11-23T07:23:00Z"
    diagnosis = answer("cordoned", api=_with(build_objects(), "cordoned", pod))
    assert (diagnosis.state, diagnosis.obstacle) == ("ended", None)


REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"


@pytest.mark.parametrize(
    ("annotations", "code", "sentence"),
    [
        ({REGISTER: ""}, "RegistrationMissing", "3 nodes that should have devices do not register them: "),
        ({REGISTER: "[{"}, "RegistrationUnusable", "The registrations of 3 nodes can't be read: "),
        (
            {HANDSHAKE: "Reported 2026-11-23 06:22:33.434037031 +0000 UTC m=+1.7"},
            "HandshakeTooOld",
            "The device plugins of 3 nodes have stopped reporting: ",
        ),
        ({HANDSHAKE: "Requesting_now"}, "HandshakeUnreadable", "The handshakes of 3 nodes hold no time "),
        (None, "NoDevicesRegistered", "None of the 3 nodes registers devices."),
    ],
)  # fmt: skip
def test_how_nodes_register_is_the_obstacle_of_a_pod_that_no_scheduler_has_judged(
    annotations: dict[str, str] | None, code: str, sentence: str
) -> None:
    """The recorded nodes with other annotations (the forms are those of facts about HAMi), opened for the pod."""
    api = build_objects()
    pod = deepcopy(RECORDED["misspelt"])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    for node in api.objects["/api/v1/nodes"]["items"]:
        node["spec"] = {}
        if annotations is None:
            node["metadata"]["annotations"], node["status"]["allocatable"] = {}, {}
        else:
            node["metadata"]["annotations"] |= annotations
    diagnosis = answer("misspelt", api=_with(api, "misspelt", pod), schedulers=[])
    # That the pod is new comes first; what is wrong with the nodes is what it meets next.
    assert get_code(diagnosis) == "NotYetSeen"
    assert [obstacle.code for obstacle in diagnosis.other_obstacles] == [code]
    assert diagnosis.other_obstacles[0].sentence.en.startswith(sentence)


def test_a_question_that_device_plugins_leave_unanswered_is_no_obstacle() -> None:
    """Since HAMi v2.8: the devices are used as long as the kubelet offers them."""
    api = build_objects()
    pod = deepcopy(RECORDED["misspelt"])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    for node in api.objects["/api/v1/nodes"]["items"]:
        node["metadata"]["annotations"][HANDSHAKE] = "Requesting_2026-11-23 05:22:33"
    diagnosis = answer("misspelt", api=_with(api, "misspelt", pod), schedulers=[])
    assert diagnosis.other_obstacles == []


def test_what_the_api_server_refuses_is_named_and_the_rest_is_answered() -> None:
    api = build_objects()
    api.refused["/api/v1/namespaces/test-diagnosis/resourcequotas"] = KubeApiError(403, "resourcequotas is forbidden")
    diagnosis = answer("gated", api=api)
    assert get_code(diagnosis) == "SchedulingGated"
    assert [(unknown.subject, unknown.cause) for unknown in diagnosis.not_known] == [("quotas", "not-allowed")]

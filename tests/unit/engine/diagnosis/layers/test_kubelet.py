"""Pods that their node refused, evicted or lost: nobody tries them again, and they have not run to their end."""

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.tree import diagnose
from schemas.json_types import Json
from tests.support.builders.layer_objects import NOW, a_pod, an_event, diagnose_case, get_code


def a_refused_pod(reason: str, message: str, **metadata: object) -> Json:
    status = {"phase": "Failed", "reason": reason, "message": message}
    return a_pod(metadata=metadata, spec={"nodeName": "n-7", "schedulerName": "hami-scheduler"}, status=status)


@pytest.mark.parametrize(
    ("reason", "message", "code", "numbers"),
    [
        (
            "UnexpectedAdmissionError",
            (
                "Pod was rejected: Allocate failed due to requested number of devices unavailable for amd.com/gpu. "
                "Requested: 3, Available: 1, which is unexpected"
            ),
            "KubeletLacksDevices",
            {"asked": 3, "free": 1},
        ),
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 8000, used: 90500, capacity: 96000",
            "KubeletOutOfResource",
            {"asked": 8, "capacity": 96},
        ),
        (
            "OutOfpods",
            "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110",
            "KubeletOutOfResource",
            {"asked": 1, "used": 110, "capacity": 110},
        ),
        (
            "UnexpectedAdmissionError",
            "Allocate failed due to rpc error: code = Unknown desc = device 7 is gone, which is unexpected",
            "KubeletPluginFailed",
            {},
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
                "nvidia.com/gpu, which "
                "is unexpected"
            ),
            "KubeletUnhealthyDevices",
            {},
        ),
        ("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed", "KubeletRefusedPod", {}),
        ("TopologyAffinityError", "Resources cannot be allocated with Topology locality", "KubeletTopology", {}),
        ("Preempting", "Preempted in order to admit critical pod", "KubeletPreempted", {}),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", "KubeletShutdown", {}),
        ("Evicted", "The node had condition: [DiskPressure]. ", "KubeletEvicted", {}),
    ],
)
def test_each_refusal_of_a_kubelet_has_its_own_answer(
    reason: str, message: str, code: str, numbers: dict[str, int]
) -> None:
    diagnosis = diagnose_case(a_refused_pod(reason, message))
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", code)
    assert diagnosis.obstacle
    assert diagnosis.obstacle.numbers == numbers
    assert "n-7" in diagnosis.sentence.en
    assert "n-7" in diagnosis.sentence.zh
    # The last question that is asked.
    assert [step.step for step in diagnosis.steps] == ["PodExists", "TakenByNode"]


def test_the_owner_makes_a_new_pod_and_a_bare_pod_has_to_be_made_by_hand() -> None:
    message = "Node didn't have enough resource: memory, requested: 1073741824, used: 2147483648, capacity: 2684354560"
    diagnosis = diagnose_case(a_refused_pod("OutOfmemory", message))
    assert diagnosis.obstacle
    assert diagnosis.obstacle.sentence.en == (
        "The kubelet of node n-7 refused the pod (OutOfmemory): 1Gi of memory asked, and 2Gi of 2.5Gi are in use there."
    )
    assert "it has no owner, so delete it and create it again yourself" in diagnosis.obstacle.remedy.en
    owner = {"kind": "Job", "name": "train", "controller": True}
    diagnosis = diagnose_case(a_refused_pod("OutOfmemory", message, ownerReferences=[owner]))
    assert diagnosis.obstacle
    assert "delete it, and Job/train makes a new one" in diagnosis.obstacle.remedy.en


def test_an_event_names_who_had_chosen_the_node() -> None:
    pod = a_refused_pod("OutOfcpu", "Node didn't have enough resource: cpu, requested: 8000, used: 1, capacity: 5000")
    event = an_event("Scheduled", "Successfully assigned lab/job-0 to n-7", reporter="second-scheduler", type="Normal")
    assert diagnose_case(pod, event).sentence.en.endswith("; second-scheduler had chosen the node.")


def test_hamis_device_plugin_refuses_a_pod_that_did_not_come_through_its_scheduler() -> None:
    message = (
        "Allocate failed due to rpc error: code = Unknown desc = no binding pod found on node n-7, which is unexpected"
    )
    diagnosis = diagnose_case(a_refused_pod("UnexpectedAdmissionError", message))
    assert get_code(diagnosis) == "KubeletPluginUnbound"
    assert "the pod has no mark of HAMi's scheduler (annotation hami.io/vgpu-node)" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "`nodeName` was set by hand" in diagnosis.obstacle.likely_cause.en
    marked = a_refused_pod("UnexpectedAdmissionError", message, annotations={"hami.io/vgpu-node": "n-7"})
    assert "no mark" not in diagnose_case(marked).sentence.en


def test_an_eviction_has_the_resource_what_was_left_and_what_was_used() -> None:
    message = (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 8Gi, available: 2Gi. Container work was "
        "using 44Gi, request is 1Gi, has larger consumption of ephemeral-storage. "
    )
    pod = a_refused_pod("Evicted", message)
    pod["status"]["containerStatuses"] = [
        {"name": "work", "state": {"terminated": {"startedAt": "2026-11-24T08:01:00Z"}}}
    ]
    diagnosis = diagnose_case(pod)
    assert diagnosis.sentence.en == (
        "The kubelet of node n-7 evicted the pod, because the node was low on ephemeral-storage: 2Gi were left, the "
        "threshold is 8Gi; container work used 44Gi and requests 1Gi."
    )
    assert diagnosis.obstacle
    assert "Request ephemeral-storage" in diagnosis.obstacle.remedy.en


def test_a_pod_that_wrote_more_than_its_limit_has_the_limit_in_its_answer() -> None:
    message = 'Container work exceeded its local ephemeral storage limit "5Gi". '
    diagnosis = diagnose_case(a_refused_pod("Evicted", message))
    assert get_code(diagnosis) == "KubeletEvictedOverLimit"
    assert "limit of 5Gi" in diagnosis.sentence.en


@pytest.mark.parametrize("reason", ["", "DeadlineExceeded"])
def test_a_pod_that_ran_to_its_end_has_ended(reason: str) -> None:
    pod = a_refused_pod(reason, "")
    pod["status"]["containerStatuses"] = [
        {"name": "main", "state": {"terminated": {"startedAt": "2026-11-24T08:01:00Z"}}}
    ]
    assert diagnose_case(pod).state == "ended"


def test_a_preempted_pod_names_the_winner_and_both_priorities() -> None:
    condition = {
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "2026-11-24T08:10:00Z",
    }  # fmt: skip
    pod = a_pod(spec={"nodeName": "n-7", "priority": 10}, status={"phase": "Failed", "conditions": [condition]})
    winner = a_pod("urgent", spec={"priority": 1000})
    event = an_event("Preempted", "Preempted by pod uid-urgent on node n-7", type="Normal", time="2026-11-24T08:10:00Z")
    diagnosis = diagnose_case(pod, winner, event)
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", "Preempted")
    assert diagnosis.sentence.en == (
        "default-scheduler preempted the pod on node n-7 to make room for a pod of higher priority: lab/urgent "
        "(priority 1,000, this pod has 10), at 08:10:00 UTC."
    )
    # The event is gone after an hour, the condition stays.
    assert diagnose_case(pod).sentence.en == (
        "default-scheduler preempted the pod on node n-7 to make room for a pod of higher priority, at 08:10:00 UTC."
    )


def test_a_drained_pod_was_evicted_through_the_api() -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    pod = a_pod(spec={"nodeName": "n-7"}, status={"phase": "Failed", "conditions": [condition]})
    diagnosis = diagnose_case(pod)
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", "EvictedFromNode")
    assert diagnosis.obstacle
    assert "kubectl drain" in diagnosis.obstacle.likely_cause.en


def test_a_pod_that_yunikorn_gave_up_has_not_ended() -> None:
    pod = a_pod(
        spec={"schedulerName": "yunikorn"},
        status={"phase": "Failed", "reason": "ApplicationRejectedFailure", "message": "queue root.x does not exist"},
    )
    diagnosis = diagnose_case(pod)
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", "RejectedByScheduler")
    assert "queue root.x does not exist" in diagnosis.sentence.en


def test_a_pod_that_is_gone_has_the_preemption_that_its_events_still_name() -> None:
    event = an_event("Preempted", "Preempted by lab/urgent on node n-7", type="Normal")
    diagnosis = diagnose_case(a_pod("urgent"), event)
    assert (diagnosis.state, get_code(diagnosis)) == ("rejected", "Preempted")
    assert "node n-7" in diagnosis.sentence.en
    assert "its owner, if it had one, has made another" in (diagnosis.obstacle.remedy.en if diagnosis.obstacle else "")


def test_a_pod_that_the_cluster_reports_as_gone_has_the_preemption_as_the_cause() -> None:
    note = "Preempted: Preempted by lab/urgent on node n-7"
    event = Evidence("event", "/events", NOW, "default-scheduler", words=note)
    deleted_pod = PodOnCluster(Evidence("pod", "/pods/job-0", NOW), is_gone=True)
    diagnosis = diagnose(DiagnosisFacts("default", "lab", "job-0", NOW, pod=deleted_pod, events=[event]))
    assert (diagnosis.state, get_code(diagnosis)) == ("missing", "Preempted")


def test_a_pod_that_its_node_cannot_start_has_the_words_of_its_container() -> None:
    state = {"waiting": {"reason": "CreateContainerError", "message": 'no runtime for "nvidia" is configured'}}
    status = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": state}]}
    diagnosis = diagnose_case(a_pod(spec={"nodeName": "n-7"}, status=status))
    assert (diagnosis.state, get_code(diagnosis)) == ("placed", "RuntimeNotConfigured")
    assert 'CreateContainerError: container main: no runtime for "nvidia" is configured' in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("no healthy devices present; cannot allocate unhealthy devices amd.com/gpu", "KubeletUnhealthyDevices"),
        ("cannot allocate unregistered device amd.com/gpu", "KubeletUnregistered"),
    ],
)
def test_a_kubelet_refuses_an_amount_of_zero_where_the_node_has_no_device(words: str, code: str) -> None:
    for amount, expected in (("0", "KubeletAskedForNone"), (0, "KubeletAskedForNone"), ("2", code)):
        pod = a_pod(
            spec={"nodeName": "n-7", "containers": [{"name": "c", "resources": {"limits": {"amd.com/gpu": amount}}}]},
            status={
                "phase": "Failed",
                "reason": "UnexpectedAdmissionError",
                "message": f"Pod was rejected: Allocate failed due to {words}, which is unexpected",
            },
        )
        diagnosis = diagnose_case(pod)
        assert get_code(diagnosis) == expected
        assert diagnosis.obstacle
        assert ("Leave amd.com/gpu out" in diagnosis.obstacle.remedy.en) == (amount != "2")

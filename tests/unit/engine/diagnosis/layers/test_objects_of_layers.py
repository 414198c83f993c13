"""Objects of layers around a pod: flavors, stopped queues and checks of Kueue, reservation pods of KAI, placeholders.

The fields and conditions are those that Kueue's reference (v1beta2), KAI's binder and YuniKorn's "Gang scheduling"
document; the words of an object stand in the answer unchanged.
"""

from typing import Any

import pytest

from schemas.json_types import Json
from tests.support.builders.kueue_objects import GATE, a_workload, an_object, list_queues
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code


def an_admitted_workload(flavor: str) -> Json:
    workload = a_workload("Admitted", "admitted", status="True", kind="Admitted")
    sets = [{"name": "main", "flavors": {"nvidia.com/gpu": flavor}}]
    workload["status"]["admission"] = {"clusterQueue": "batch", "podSetAssignments": sets}
    return workload


def a_flavor(**labels: str) -> Json:
    return an_object("ResourceFlavor", "big", "", spec={"nodeLabels": labels})


@pytest.mark.parametrize(
    ("flavor", "is_without_node"),
    [
        (a_flavor(gpu="h100"), True),
        (a_flavor(gpu="a100"), False),
        (a_flavor(gpu="a100", zone="b"), True),  # every label has to be on one node
        (a_flavor(), False),  # a flavor without labels is any node
    ],
    ids=["other label", "label of a node", "one of two labels", "no labels"],
)
def test_a_flavor_needs_a_node_with_all_of_its_labels(flavor: Json, is_without_node: bool) -> None:
    nodes = a_node("n1", labels={"gpu": "a100"}), a_node("n2", labels={"zone": "b"})
    diagnosis = diagnose_case(a_pod(), an_admitted_workload("big"), *list_queues(), flavor, *nodes)
    codes = {item.code for item in (diagnosis.obstacle, *diagnosis.other_obstacles) if item}
    assert ("FlavorWithoutNode" in codes) is is_without_node


def test_a_flavor_without_node_is_named_with_its_labels_and_queue() -> None:
    diagnosis = diagnose_case(a_pod(), an_admitted_workload("big"), *list_queues(), a_flavor(gpu="h100"), a_node("n1"))
    assert diagnosis.sentence.en == (
        "Kueue has admitted the workload in flavor big of ClusterQueue batch, and no node has the labels of this "
        "flavor: gpu=h100."
    )


def stop(policy: str, *conditions: Json, kind: str = "ClusterQueue") -> list[Json]:
    """Return both queues, one of them with a stop policy and conditions."""
    queues = list_queues()
    queue = next(queue for queue in queues if queue["kind"] == kind)
    queue["spec"] = queue["spec"] | ({"stopPolicy": policy} if policy else {})
    queue["status"] = queue.get("status", {}) | {"conditions": list(conditions)}
    return queues


def is_active(status: str, reason: str, message: str) -> Json:
    return {"type": "Active", "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("queues", "code", "words"),
    [
        (stop("Hold"), "KueueQueueStopped", "ClusterQueue batch takes no workloads now (stopPolicy: Hold)"),
        (
            stop("HoldAndDrain", is_active("False", "Stopped", "is stopped")),
            "KueueQueueStopped",
            "(Stopped: is stopped); its stopPolicy is HoldAndDrain: workloads that it has admitted are taken back too",
        ),
        (stop("Hold", kind="LocalQueue"), "KueueQueueStopped", "LocalQueue night takes no workloads now"),
        (
            stop("", is_active("False", "FlavorNotFound", "references missing ResourceFlavor(s): big")),
            "KueueQueueBroken",
            "FlavorNotFound: references missing ResourceFlavor(s): big",
        ),
    ],
    ids=["held", "drained", "local queue held", "flavor missing"],
)
def test_a_queue_that_takes_no_workloads_says_why(queues: list[Json], code: str, words: str) -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("Pending", "inactive"), *queues)
    assert get_code(diagnosis) == code
    assert words in diagnosis.sentence.en


@pytest.mark.parametrize(
    "queues", [stop("None"), stop("", is_active("True", "Ready", "ready"))], ids=["None", "active"]
)
def test_an_active_queue_stops_nothing(queues: list[Json]) -> None:
    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor big, 6 more "
        "needed"
    )
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("Pending", message), *queues)
    assert get_code(diagnosis) == "KueueWaitsForQuota"


def check(state: str, message: str = "", name: str = "nodes") -> Json:
    return {"name": name, "state": state, "message": message}


def a_checked_workload(*checks: Json) -> Json:
    workload = a_workload("QuotaReserved", "Quota reserved in ClusterQueue batch", status="True")
    workload["status"]["admissionChecks"] = list(checks)
    return workload


@pytest.mark.parametrize(
    ("checks", "code", "end"),
    [
        ([check("Rejected", "no capacity")], "KueueCheckRejected", "check nodes has rejected it: no capacity."),
        ([check("Rejected")], "KueueCheckRejected", "check nodes has rejected it."),
        # A check that failed decides, whichever comes first.
        (
            [check("Pending"), check("Rejected", "no", "budget")],
            "KueueCheckRejected",
            "check budget has rejected it: no.",
        ),
        ([check("Retry", "Quota of zone a is used up")], "KueueCheckFails", "is Retry: Quota of zone a is used up."),
        ([check("Pending", "Could not reach the API")], "KueueCheckFails", "is Pending: Could not reach the API."),
        (
            [check("Pending", 'admission webhook "a.example.com" denied the request: no team label')],
            "KueueCheckFails",
            "is Pending: no team label.",
        ),
        (
            [check("Pending", "Waits for 4 nodes"), check("Ready", "done", "budget")],
            "KueueChecks",
            ": nodes is Pending (Waits for 4 nodes).",
        ),
        ([check("Pending"), check("Retry", name="budget")], "KueueChecks", ": nodes is Pending; budget is Retry."),
        (
            [check("Ready", 'The workload got reservation on "west"')],
            "KueueElsewhere",
            "on cluster west (admission check nodes), and makes no pods here.",
        ),
    ],
)  # fmt: skip
def test_the_check_that_decides_is_named_with_its_words(checks: list[Json], code: str, end: str) -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE), a_checked_workload(*checks), *list_queues())
    assert get_code(diagnosis) == code
    assert diagnosis.sentence.en.endswith(end), diagnosis.sentence.en


def a_provisioning_request(name: str, *conditions: tuple[str, str, str, str]) -> Json:
    listed = [dict(zip(("type", "status", "reason", "message"), condition, strict=True)) for condition in conditions]
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"namespace": "lab", "name": name},
        "status": {"conditions": listed},
    }


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([("Failed", "True", "OutOfCapacity", "no H100 in zone a")], "OutOfCapacity: no H100 in zone a"),
        ([("Provisioned", "False", "NotYet", "scaling up")], "NotYet: scaling up"),
        ([("Accepted", "True", "Accepted", "taken"), ("Failed", "False", "Fine", "no failure")], ""),
        ([("Provisioned", "True", "Provisioned", "there")], ""),
    ],
)
def test_the_latest_request_for_nodes_has_the_provisioners_words(
    conditions: list[tuple[str, str, str, str]], words: str
) -> None:
    requests = [
        a_provisioning_request("w-1-nodes-1", ("Failed", "True", "Old", "an earlier try")),
        a_provisioning_request("w-1-nodes-2", *conditions),
        a_provisioning_request("w-2-nodes-9", ("Failed", "True", "Other", "of another workload")),
    ]
    diagnosis = diagnose_case(a_pod(spec=GATE), a_checked_workload(check("Pending")), *list_queues(), *requests)
    end = f"; ProvisioningRequest w-1-nodes-2: {words}." if words else ": nodes is Pending."
    assert diagnosis.sentence.en.endswith(end), diagnosis.sentence.en


RESERVATION = "kai-resource-reservation/gpu-reservation-n1-x7"
BIND_FAILED = (
    "Failed to bind pod lab/job-0 to node n1: failed waiting for GPU reservation pod to allocate: "
    f"{RESERVATION}, timed out"
)


def a_reservation_pod(**status: Any) -> Json:
    pod = a_pod("gpu-reservation-n1-x7", spec={"nodeName": "n1"}, status=status)
    pod["metadata"]["namespace"] = "kai-resource-reservation"
    return pod


@pytest.mark.parametrize(
    ("status", "code", "why"),
    [
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}},
                                    "lastState": {"terminated": {"message": "ERROR_LIBRARY_NOT_FOUND: NVML"}}}]},
            "ReservationWithoutDriver",
            ": CrashLoopBackOff: ERROR_LIBRARY_NOT_FOUND: NVML.",
        ),
        (
            {"containerStatuses": [{"state": {"terminated": {"message": "exit by hand"}}}]},
            "ReservationFails",
            ": exit by hand.",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]},
            "ReservationFails",
            ": ErrImagePull: no such image.",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating", "message": "x"}}}]},
            "ReservationFails",
            "does not hold a GPU there.",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "node is cordoned"}]},
            "ReservationFails",
            ": node is cordoned.",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "True", "message": "x"},
                            {"type": "Ready", "status": "False", "message": "y"}]},
            "ReservationFails",
            "does not hold a GPU there.",
        ),
    ],
    ids=["library", "ended", "image", "being created", "not scheduled", "scheduled"],
)  # fmt: skip
def test_a_reservation_pod_that_does_not_start_says_why(status: Json, code: str, why: str) -> None:
    pod = a_pod(spec={"schedulerName": "kai-scheduler"})
    event = an_event("BindingError", BIND_FAILED, reporter="binder")
    diagnosis = diagnose_case(pod, event, a_reservation_pod(**status))
    assert get_code(diagnosis) == code
    assert diagnosis.sentence.en.startswith(
        "Node n1 was chosen, and KAI could not bind the pod, because its reservation"
    )
    assert diagnosis.sentence.en.endswith(why), diagnosis.sentence.en


def test_a_reservation_pod_that_was_not_read_has_the_node_of_the_binders_words() -> None:
    event = an_event("BindingError", BIND_FAILED, reporter="binder")
    warning = an_event("FailedMount", "no volume", pod="gpu-reservation-n1-x7", reporter="kubelet")
    warning["regarding"]["namespace"] = warning["metadata"]["namespace"] = "kai-resource-reservation"
    diagnosis = diagnose_case(a_pod(spec={"schedulerName": "kai-scheduler"}), event, warning)
    assert diagnosis.sentence.en == (
        f"Node n1 was chosen, and KAI could not bind the pod, because its reservation pod {RESERVATION} does not "
        "hold a GPU there: FailedMount: no volume."
    )


def test_a_pod_larger_than_its_placeholder_has_both_amounts_of_what_is_larger() -> None:
    words = (
        "Task group 'workers' in application 'app-1': allocation resources 'map[memory:2147483648 nvidia.com/gpu:2 "
        "vcore:1000]' are not matching placeholder 'map[memory:1073741824 nvidia.com/gpu:2 vcore:1000]'"
    )
    pod = a_pod(spec={"schedulerName": "yunikorn"})
    diagnosis = diagnose_case(pod, an_event("GangScheduling", words, reporter="yunikorn"))
    assert get_code(diagnosis) == "PlaceholderTooSmall"
    assert diagnosis.sentence.en.endswith("application app-1: memory 2Gi asked, memory 1Gi held.")


def a_job(name: str, **spec: Any) -> Json:
    metadata = {"namespace": "lab", "name": name, "uid": f"uid-{name}"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def an_incomplete_gang(*, minimum: int = 4) -> list[Json]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    metadata = {"annotations": {"scheduling.k8s.io/group-name": "ring"}, "ownerReferences": [owner]}
    spec = {"schedulerName": "volcano"}
    words = f"pod group is not ready, 1 Pending, {minimum} minAvailable; Pending: 1 Unschedulable"
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "ring"},
        "spec": {"minMember": minimum},
    }
    pod = a_pod(spec=spec, metadata=metadata, refusal=words)
    return [pod, an_event("FailedScheduling", words, reporter="volcano"), group]


def test_a_gang_with_too_few_pods_has_the_number_that_its_job_makes() -> None:
    few = diagnose_case(*an_incomplete_gang(), a_job("train", parallelism=2)).sentence.en
    assert "Job/train" in few
    assert "1 of 4, 3 are missing" in few
    # A job that makes enough is not the cause.
    assert "Job/train" not in diagnose_case(*an_incomplete_gang(), a_job("train", parallelism=4)).sentence.en


def test_a_gang_with_too_few_pods_has_the_words_with_which_one_was_refused() -> None:
    words = 'Error creating: pods "train-x" is forbidden: exceeded quota: gpus'
    refusal = an_event("FailedCreate", words, pod="train", kind="Job", reporter="job-controller")
    sentence = diagnose_case(*an_incomplete_gang(), a_job("train", parallelism=4), refusal).sentence.en
    assert "exceeded quota: gpus" in sentence
    other = an_event("SuccessfulCreate", words, pod="train", kind="Job", reporter="job-controller")
    assert (
        "exceeded quota" not in diagnose_case(*an_incomplete_gang(), a_job("train", parallelism=4), other).sentence.en
    )

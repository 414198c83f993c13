"""Scheduling gates: what Kueue's Workload behind them lacks, and gates of other controllers."""

from typing import Any

import pytest

from schemas.json_types import Json
from tests.support.builders.kueue_objects import GATE, a_workload, an_object, list_queues
from tests.support.builders.layer_objects import a_pod, diagnose_case, get_code


def test_quota_in_use_names_queue_flavor_need_and_amounts() -> None:
    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in "
        "flavor big, 6 more needed"
    )
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("WaitingForQuota", message), *list_queues("24"))
    assert (diagnosis.state, get_code(diagnosis)) == ("gated", "KueueWaitsForQuota")
    assert diagnosis.sentence.en == (
        "Kueue holds the pod: ClusterQueue batch (queue night) has too little unused quota of nvidia.com/gpu in flavor "
        "big, 6 more needed; 24 of its 24 are in use; 3 workloads wait in the queue."
    )
    assert diagnosis.obstacle
    assert diagnosis.obstacle.numbers == {"needed": 6, "nominal": 24, "used": 24}


def test_a_second_flavor_that_never_has_enough_is_named_next_to_the_one_in_use() -> None:
    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor big, 6 more "
        "needed, insufficient quota for nvidia.com/gpu in flavor small, previously considered podsets requests (0) + "
        "current podset request (6) > maximum capacity (2)"
    )
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("WaitingForQuota", message), *list_queues("24"))
    assert get_code(diagnosis) == "KueueWaitsForQuota"
    assert "small never has enough nvidia.com/gpu: 6 asked, at most 2" in diagnosis.sentence.en


def test_the_reason_of_older_releases_has_the_same_message() -> None:
    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor big, 500m more needed"
    )
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("Pending", message), *list_queues())
    assert get_code(diagnosis) == "KueueWaitsForQuota"
    assert "of cpu in flavor big, 500m more needed" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("reason", "message", "code", "words"),
    [
        (
            "ExceedsMaxQuota",
            (
                "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor "
                "big, previously "
                "considered podsets requests (0) + current podset request (32) > maximum capacity (24)"
            ),
            "KueueExceedsMaximum",
            "which is 24",
        ),
        (
            "NoMatchingFlavor",
            "couldn't assign flavors to pod set main: untolerated taint {spot true NoSchedule <nil>} in flavor cheap",
            "KueueFlavorRefused",
            "cheap has the taint spot=true:NoSchedule",
        ),
        (
            "NoMatchingFlavor",
            "couldn't assign flavors to pod set main: flavor big doesn't match node affinity",
            "KueueFlavorRefused",
            "big does not match the node selector or affinity",
        ),
        (
            "NoMatchingFlavor",
            "couldn't assign flavors to pod set main: resource amd.com/gpu unavailable in ClusterQueue",
            "KueueResourceUncovered",
            "no quota of amd.com/gpu",
        ),
        (
            "TopologyPlacementFailed",
            'couldn\'t assign flavors to pod set main: topology "racks" allows to fit only 1 out of 4 pod(s)',
            "KueueTopology",
            "1 of 4 fit",
        ),
        ("Misconfigured", "LocalQueue nights doesn't exist", "KueueQueueMissing", "LocalQueue nights does not exist"),
        ("Suspended", "ClusterQueue batch is inactive", "KueueQueueStopped", "ClusterQueue batch takes no workloads"),
        ("WaitingForPodsReady", "waiting for all admitted workloads", "KueueWaitsForReady", "have their pods ready"),
        ("PendingEvaluation", "some new words", "KueueRefused", "PendingEvaluation: some new words"),
    ],
)
def test_each_reason_of_kueue_has_its_own_answer(reason: str, message: str, code: str, words: str) -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload(reason, message), *list_queues())
    assert get_code(diagnosis) == code
    assert words in diagnosis.sentence.en


def test_a_stopped_queue_has_its_cause_in_its_own_condition() -> None:
    condition = {
        "type": "Active",
        "status": "False",
        "reason": "FlavorNotFound",
        "message": "references missing ResourceFlavor(s): big.",
    }
    queues = list_queues()
    queues[1]["status"]["conditions"] = [condition]
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("Suspended", "ClusterQueue batch is inactive"), *queues)
    assert diagnosis.sentence.en == (
        "Kueue holds the pod: ClusterQueue batch can't admit anything, because something that it needs is missing "
        "(FlavorNotFound: references missing ResourceFlavor(s): big)."
    )


def test_a_workload_behind_the_head_of_a_strict_queue_has_no_reason_of_its_own() -> None:
    workload = a_workload("WaitForStart", "", kind="PodsReady")
    diagnosis = diagnose_case(a_pod(spec=GATE), workload, *list_queues(queueingStrategy="StrictFIFO"))
    assert get_code(diagnosis) == "KueueQueued"
    assert "its head blocks all others; 3 workloads wait there" in diagnosis.sentence.en


def test_quota_that_waits_for_an_admission_check_names_the_check() -> None:
    workload = a_workload("QuotaReserved", "Quota reserved in ClusterQueue batch", status="True")
    workload["status"]["admissionChecks"] = [{"name": "budget", "state": "Pending", "message": "asked finance"}]
    diagnosis = diagnose_case(a_pod(spec=GATE), workload, *list_queues())
    assert get_code(diagnosis) == "KueueChecks"
    assert "budget is Pending (asked finance)" in diagnosis.sentence.en


def test_a_deactivated_workload_does_not_come_back_by_itself() -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("Deactivated", "", active=False), *list_queues())
    assert get_code(diagnosis) == "KueueDeactivated"


def test_a_gate_of_another_controller_is_not_kueues_even_where_kueue_has_admitted() -> None:
    gate = {"schedulingGates": [{"name": "data.example.org/copied"}]}
    workload = a_workload("Admitted", "The workload is admitted", status="True", kind="Admitted")
    diagnosis = diagnose_case(a_pod(spec=gate), workload, *list_queues())
    assert get_code(diagnosis) == "SchedulingGated"
    assert diagnosis.sentence.en == (
        "1 scheduling gate holds the pod back: data.example.org/copied; Kueue has admitted the workload (ClusterQueue "
        "batch), so this gate is not Kueue's."
    )
    assert diagnosis.obstacle
    assert diagnosis.obstacle.likely_cause.en.startswith("The controller of data.example.org put the gate there")


def test_a_gate_of_kueue_without_its_workload_sends_to_the_workload() -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE, metadata={"labels": {"kueue.x-k8s.io/queue-name": "night"}}))
    assert get_code(diagnosis) == "KueueHolds"
    assert diagnosis.sentence.en == "Kueue holds the pod back (kueue.x-k8s.io/admission), in queue night."


def test_a_check_that_asks_for_nodes_has_the_words_of_their_provisioner() -> None:
    workload = a_workload("QuotaReserved", "Quota reserved in ClusterQueue batch", status="True")
    workload["status"]["admissionChecks"] = [{"name": "nodes", "state": "Pending", "message": ""}]
    conditions = [
        {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "accepted"},
        {"type": "Provisioned", "status": "False", "reason": "PoolExhausted", "message": "the zone is full"},
    ]
    request = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
               "metadata": {"name": "w-1-nodes-2", "namespace": "lab"},
               "status": {"conditions": conditions}}  # fmt: skip
    diagnosis = diagnose_case(a_pod(spec=GATE), workload, request, *list_queues())
    assert "nodes is Pending; ProvisioningRequest w-1-nodes-2: PoolExhausted: the zone is full" in diagnosis.sentence.en


def test_a_limit_of_borrowing_stands_next_to_the_quota_in_use() -> None:
    queues = list_queues("24", cohortName="lab")
    queues[1]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "2"
    message = "insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed"
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("WaitingForQuota", message), *queues)
    assert "24 of its 24 are in use, and it may borrow at most 2 from its cohort lab" in diagnosis.sentence.en


def a_lender(name: str, used: str, limit: str) -> Json:
    """A ClusterQueue of the cohort with 16 GPUs of its own, of which it lends ``limit``."""
    quota = {"name": "nvidia.com/gpu", "nominalQuota": "16", "lendingLimit": limit}
    usage = {"name": "nvidia.com/gpu", "total": used, "borrowed": "0"}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": name},
        "spec": {"cohort": "lab", "resourceGroups": [{"flavors": [{"name": "big", "resources": [quota]}]}]},
        "status": {"flavorsReservation": [{"name": "big", "resources": [usage]}]},
    }  # fmt: skip


def test_free_quota_that_a_queue_of_the_cohort_does_not_lend_is_named_with_its_limit() -> None:
    message = "insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed"
    others = [a_lender("vision", used="2", limit="4"), a_lender("speech", used="12", limit="4")]
    queues = list_queues("24", cohortName="lab")
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("WaitingForQuota", message), *queues, *others)
    # Vision uses 2 of the 12 that it keeps; speech uses all that it keeps.
    assert "keep free quota for themselves: vision (10, lendingLimit 4)" in diagnosis.sentence.en
    assert "为自己保留空闲配额：vision (10, lendingLimit 4)" in diagnosis.sentence.zh
    assert "speech" not in diagnosis.sentence.en


def test_holders_of_other_namespaces_are_counted_and_not_named() -> None:
    holder = a_workload("QuotaReserved", "", status="True")
    holder["metadata"] |= {"name": "w-2", "namespace": "other", "ownerReferences": [{"kind": "Job", "name": "secret"}]}
    assignment = {"name": "main", "resourceUsage": {"nvidia.com/gpu": "24"}}
    holder["status"]["admission"] = {"clusterQueue": "batch", "podSetAssignments": [assignment]}
    message = "insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed"
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload("WaitingForQuota", message), holder, *list_queues("24"))
    assert "held by 1 workload of other namespaces" in diagnosis.sentence.en
    assert "secret" not in diagnosis.sentence.en


def test_an_eviction_by_a_check_names_the_check_and_the_next_try() -> None:
    workload = a_workload("PendingEvaluation", "At least one admission check is false")
    workload["status"] |= {
        "admissionChecks": [{"name": "nodes", "state": "Retry", "message": "no capacity"}],
        "requeueState": {"count": 2, "requeueAt": "2026-11-24T08:40:00Z"},
    }
    workload["status"]["conditions"] += [
        {"type": "Evicted", "status": "True", "reason": "AdmissionCheck", "message": "a check is false"},
        {"type": "Requeued", "status": "False", "reason": "AdmissionCheck", "message": "a check is false"},
    ]
    diagnosis = diagnose_case(a_pod(spec=GATE), workload, *list_queues())
    assert get_code(diagnosis) == "KueueEvicted"
    assert "nodes is Retry (no capacity); taken back 2 times; it goes back into the queue at 2026-11-24T08:40:00Z" in (
        diagnosis.sentence.en
    )


def a_waiting_workload(name: str, *, second: int, priority: int = 0, **metadata: str) -> Json:
    """Build a Workload of the same queue that was created in this second of a minute."""
    workload = a_workload("WaitingForQuota", "", priority=priority)
    created = {"name": f"w-{name}", "creationTimestamp": f"2026-11-27T10:00:{second:02}Z"}
    owner = {"kind": "Job", "name": name}
    workload["metadata"] |= {**created, "ownerReferences": [owner], **metadata}
    return workload


def explain_third(*others: Json, **queue: Any) -> str:
    """Explain a pod whose Workload is the third in its queue of three, by priority and time."""
    message = "insufficient unused quota for nvidia.com/gpu in flavor big, 6 more needed"
    workload = a_workload("WaitingForQuota", message)
    workload["metadata"]["creationTimestamp"] = "2026-11-27T10:00:30Z"
    return diagnose_case(a_pod(spec=GATE), workload, *others, *list_queues("24", **queue)).sentence.en


BEFORE = (a_waiting_workload("urgent", second=50, priority=9), a_waiting_workload("early", second=10))
"""Two that come before it: by its priority, and by its time."""


def test_those_before_a_workload_in_its_queue_are_named_in_their_order() -> None:
    strict = explain_third(*BEFORE, queueingStrategy="StrictFIFO")
    assert strict.endswith("it is number 3 of 3 in the queue, after Job/urgent, Job/early.")
    loose = explain_third(*BEFORE, queueingStrategy="BestEffortFIFO")
    assert loose.endswith(", Job/early (BestEffortFIFO: one that fits may start before those ahead of it).")


def test_those_before_it_in_other_namespaces_are_counted() -> None:
    queue = an_object("LocalQueue", "night", "other", spec={"clusterQueue": "batch"})
    text = explain_third(BEFORE[0], a_waiting_workload("secret", second=10, namespace="other"), queue)
    assert "after Job/urgent, 1 workload of other namespaces" in text
    assert "secret" not in text


def test_no_place_is_given_where_not_all_that_wait_were_read() -> None:
    text = explain_third(BEFORE[0])
    assert text.endswith("; 3 workloads wait in the queue.")


def test_no_place_is_given_where_usage_comes_before_priority() -> None:
    text = explain_third(*BEFORE, admissionScope={"admissionMode": "UsageBasedAdmissionFairSharing"})
    assert text.endswith("; its place is not known, because UsageBasedAdmissionFairSharing changes the order.")


def test_no_place_is_given_where_a_priority_is_boosted() -> None:
    boosted = a_waiting_workload("late", second=59)
    boosted["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "100"}
    text = explain_third(BEFORE[0], boosted)
    assert text.endswith("; its place is not known, because kueue.x-k8s.io/priority-boost changes the order.")

"""Queues and quotas that refuse a pod before a node is looked at."""

import pytest

from schemas.answers.diagnosis import Diagnosis
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code


def refuse(words: str, scheduler: str = "koord-scheduler") -> Diagnosis:
    pod = a_pod(spec={"schedulerName": scheduler}, refusal=words)
    return diagnose_case(pod, an_event("FailedScheduling", words, reporter=scheduler), a_node("n"))


@pytest.mark.parametrize(
    "amounts",
    [
        "runtime: map[nvidia.com/gpu:12], used: map[nvidia.com/gpu:9], pod's request: map[nvidia.com/gpu:5]",
        'runtime: {"nvidia.com/gpu":"12"}, used: {"nvidia.com/gpu":"9"}, pod\'s request: {"nvidia.com/gpu":"5"}',
        (
            "runtime: map[nvidia.com/gpu:{{12 0} {<nil>} 12 DecimalSI}], "
            "used: map[nvidia.com/gpu:{{9 0} {<nil>} 9 DecimalSI}], "
            "pod's request: map[nvidia.com/gpu:{{5 0} {<nil>} 5 DecimalSI}]"
        ),
    ],
)
def test_koordinators_quota_has_its_numbers_in_every_form_that_go_prints(amounts: str) -> None:
    diagnosis = refuse(
        f"0/7 nodes are available: Insufficient quotas, quotaName: vision, {amounts}, "
        f"exceedDimensions: [nvidia.com/gpu]."
    )
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", "QueueFull")
    assert diagnosis.sentence.en == (
        "Koordinator refused the pod before it looked at a node: quota vision leaves too little "
        "nvidia.com/gpu for it: 9 "
        "of 12 are used, and the pod asks for 5."
    )
    assert not diagnosis.other_obstacles


@pytest.mark.parametrize(
    ("parent", "words", "code"),
    [
        ("", "Unable to schedule pod", "QueueWithoutParent"),
        ("team", "Unable to schedule pod", "KaiNamesNoReason"),
        ("", "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs.", ""),
    ],
)
def test_a_kai_queue_of_the_top_level_is_named_where_kai_names_no_reason(parent: str, words: str, code: str) -> None:
    spec = {"parentQueue": parent} if parent else {}
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "edge"}, "spec": spec}
    pod = a_pod(spec={"schedulerName": "kai-scheduler"}, metadata={"labels": {"kai.scheduler/queue": "edge"}})
    diagnosis = diagnose_case(pod, queue, an_event("Unschedulable", words, reporter="kai-scheduler"))
    assert ("edge, the queue of the pod, has no parent queue" in diagnosis.sentence.en) is (
        code == "QueueWithoutParent"
    )
    assert not code or get_code(diagnosis) == code


def test_a_limit_of_a_kai_queue_has_its_numbers() -> None:
    words = (
        "OverLimit: vision quota has reached the allowable limit of GPUs. Limit is 4 GPUs, "
        "currently 3 GPUs allocated and workload requested 2 GPUs"
    )
    assert refuse(words, "kai-scheduler").sentence.en == (
        "KAI refused the pod before it looked at a node: queue vision leaves too little GPUs for "
        "it: 3 of 4 are used, and "
        "the pod asks for 2."
    )


def build_non_preemptible(requested: str, limit: str, used: str) -> str:
    return (
        f"NonPreemptibleOverQuota: Non-preemptible workload is over quota. Workload requested {requested} GPUs, "
        f"but vision quota is {limit} GPUs, while {used} GPUs are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def test_numbers_that_fit_contradict_the_refusal() -> None:
    diagnosis = refuse(build_non_preemptible("0.6", "0.7", "0.1"), "kai-scheduler")
    assert get_code(diagnosis) == "QueueContradicts"
    assert "0.1 are allocated and 0.6 asked, together 0.7, which is not over 0.7" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "(to 0.71)" in diagnosis.obstacle.remedy.en
    assert "(0.59)" in diagnosis.obstacle.remedy.en
    diagnosis = refuse(build_non_preemptible("0.7", "0.7", "0.1"), "kai-scheduler")
    assert get_code(diagnosis) == "QueueFull"
    # KAI divides the cluster among its queues in each scheduling cycle (its docs/fairness/README.md).
    assert diagnosis.obstacle
    assert "KAI writes on no object which of the waiting pods comes first" in diagnosis.obstacle.likely_cause.en
    assert "the pod's place in the queue is not known" in diagnosis.obstacle.likely_cause.en


@pytest.mark.parametrize("name", ["ElasticQuota lab", "quota lab/vision"])
def test_the_capacity_plugin_names_its_quota(name: str) -> None:
    diagnosis = refuse(
        f"0/7 nodes are available: Pod lab/job-0 is rejected in PreFilter because {name} is more than Max."
    )
    assert get_code(diagnosis) == "ElasticQuotaFull"
    assert "above its max" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert "the pod's place in the queue is not known" in diagnosis.obstacle.likely_cause.en


def test_a_group_that_volcano_does_not_let_into_its_queue_has_its_reason_on_the_group() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "ring"}, "spec": {"minMember": 1, "queue": "night"},
        "status": {"phase": "Pending"},
    }  # fmt: skip
    pod = a_pod(spec={"schedulerName": "volcano"}, metadata={"annotations": {"scheduling.k8s.io/group-name": "ring"}})
    event = an_event(
        "Unschedulable",
        "queue resource quota insufficient: insufficient nvidia.com/gpu",
        pod="ring",
        kind="PodGroup",
        reporter="volcano",
        type="Normal",
    )
    diagnosis = diagnose_case(pod, group, event)
    assert get_code(diagnosis) == "GroupNotEnqueued"
    assert (
        diagnosis.sentence.en
        == "Volcano has not let the pod group ring into its queue night: too little nvidia.com/gpu."
    )
    assert diagnosis.obstacle
    assert "the group's place in the queue is not known" in diagnosis.obstacle.likely_cause.en


@pytest.mark.parametrize(
    ("capability", "resources"),
    [
        ({"cpu": "100", "amd.com/gpu": "4"}, "amd.com/gpu"),
        ({"cpu": "100"}, "of a resource that its event does not name"),
    ],
)
def test_older_volcano_does_not_name_what_the_queue_lacks(capability: dict[str, str], resources: str) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "ring"},
        "spec": {"minMember": 1, "queue": "night", "minResources": {"cpu": "8", "amd.com/gpu": "2"}},
        "status": {"phase": "Pending"},
    }  # fmt: skip
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "night"},
        "spec": {"capability": capability},
        "status": {"state": "Open", "allocated": {"amd.com/gpu": "3"}},
    }  # fmt: skip
    pod = a_pod(spec={"schedulerName": "volcano"}, metadata={"annotations": {"scheduling.k8s.io/group-name": "ring"}})
    event = an_event(
        "Unschedulable", "queue resource quota insufficient", pod="ring", kind="PodGroup", reporter="volcano"
    )
    diagnosis = diagnose_case(pod, group, queue, event)
    assert get_code(diagnosis) == "GroupNotEnqueued"
    assert f"into its queue night: too little {resources}" in diagnosis.sentence.en


def test_a_refusal_before_nodes_in_other_words_is_no_error() -> None:
    diagnosis = refuse("0/7 nodes are available: tenant is not paid for.", "default-scheduler")
    assert get_code(diagnosis) == "RefusedBeforeNodes"
    assert get_code(refuse("the cache is broken", "default-scheduler")) == "FilterError"


def test_a_cluster_that_is_overused_is_not_blamed_on_the_queues_own_capability() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "ring"},
        "spec": {"minMember": 1, "queue": "night", "minResources": {"cpu": "8"}}, "status": {"phase": "Pending"},
    }  # fmt: skip
    queues = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
            "spec": {"capability": {"cpu": "100"}}, "status": {"state": "Open", "allocated": {"cpu": used}},
        }
        for name, used in (("night", "4"), ("day", "10"))
    ]  # fmt: skip
    pod = a_pod(spec={"schedulerName": "volcano"}, metadata={"annotations": {"scheduling.k8s.io/group-name": "ring"}})
    words = "resource in cluster is overused: overused cpu"
    event = an_event("Unschedulable", words, pod="ring", kind="PodGroup", reporter="volcano", type="Normal")
    diagnosis = diagnose_case(pod, group, *queues, event, a_node("n1"), a_node("n2"))
    assert get_code(diagnosis) == "GroupNotEnqueued"
    assert "ask for more than the cluster has: 14 of 16 are in use, and the group asks for 8" in diagnosis.sentence.en
    assert "capability" not in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("requests", "named"),
    [
        # ElasticQuota refuses what is above the limit: 9 and 3 of 12 are as much as it allows.
        ("nvidia.com/gpu:3 cpu:5", "cpu"),
        ("nvidia.com/gpu:4 cpu:5", "nvidia.com/gpu"),
        ("nvidia.com/gpu:3 cpu:2", "?"),
    ],
)
def test_a_quota_that_names_no_resource_is_exceeded_where_the_sum_is_above_its_limit(requests: str, named: str) -> None:
    diagnosis = refuse(
        "0/7 nodes are available: Insufficient quotas, quotaName: vision, runtime: map[nvidia.com/gpu:12 cpu:6], "
        f"used: map[nvidia.com/gpu:9 cpu:4], pod's request: map[{requests}], exceedDimensions: []."
    )
    assert get_code(diagnosis) == "QueueFull"
    assert f"leaves too little {named} for it" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ("Queue 'edge' does not exist", "True", "QueueMissing"),
        (
            (
                "edge quota has reached the allowable limit of GPUs. Limit is 4 GPUs, currently 3 GPUs allocated "
                "and workload requested 2 GPUs"
            ),
            "True",
            "QueueFull",
        ),
        ("Queue 'edge' does not exist", "False", ""),
    ],
)
def test_the_condition_of_kais_group_explains_a_pod_whose_events_are_gone(words: str, status: str, code: str) -> None:
    reason = {"reason": "QueueDoesNotExist" if "exist" in words else "OverLimit", "message": words}
    condition = {"type": "UnschedulableOnNodePool", "status": status, "reasons": [reason]}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "pg"},
        "status": {"schedulingConditions": [condition]},
    }
    pod = a_pod(spec={"schedulerName": "kai-scheduler"}, metadata={"annotations": {"pod-group-name": "pg"}})
    diagnosis = diagnose_case(pod, group, a_node("n"))
    assert (diagnosis.obstacle.code if diagnosis.obstacle else "") == code

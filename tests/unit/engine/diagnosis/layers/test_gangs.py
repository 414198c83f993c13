"""Gangs: members that are missing, and the member that keeps all others waiting."""

from typing import Any

import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_pod, an_event, diagnose_case, get_code

LABEL: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": "ring"}}
COUNTS = "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu."


def a_group(api: str, **more: object) -> Json:
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"namespace": "lab", "name": "ring"},
        "spec": {"minMember": 6, **more},
    }


def refuse(words: str, *objects: Json, scheduler: str = "default-scheduler", **metadata: Any) -> Diagnosis:
    pod = a_pod(spec={"schedulerName": scheduler}, metadata=metadata, refusal=words)
    return diagnose_case(pod, an_event("FailedScheduling", words, reporter=scheduler), *objects)


def test_volcanos_text_on_a_pod_names_the_member_that_fits_nowhere_and_its_nodes() -> None:
    words = (
        "pod group is not ready, 2 Pending, 4 Running, 6 minAvailable; Pending: 1 Unschedulable, 1 Undetermined. "
        "Origin reason is ring-4: 0/5 nodes are unavailable: 2 node(s) had untolerated taint(s), 3 "
        "Insufficient nvidia.com/gpu."
    )
    group = a_group("scheduling.volcano.sh/v1beta1")
    diagnosis = refuse(words, group, scheduler="volcano", annotations={"scheduling.k8s.io/group-name": "ring"})
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", "GangWaits")
    assert diagnosis.sentence.en == (
        "The pod waits for its gang and was not judged itself (group ring); 6 of its pods have to start together (2 "
        "Pending, 4 Running); ring-4 fits nowhere: 3 of 5 nodes have too little nvidia.com/gpu "
        "left, or none is offered; 2 of 5 nodes have a "
        "taint that the pod does not tolerate."
    )
    # The member itself has the nodes' reasons, and no gang stands before them.
    member = diagnose_case(
        a_pod("ring-4", spec={"schedulerName": "volcano"}, refusal=COUNTS.replace("available", "unavailable")),
        an_event("FailedScheduling", COUNTS.replace("available", "unavailable"), pod="ring-4", reporter="volcano"),
        name="ring-4",
    )
    assert get_code(member) == "ResourceShortOrMissing"


def test_the_number_of_members_explains_a_group_text_without_a_member_to_blame() -> None:
    words = "pod group is not ready, 2 Pending, 6 minAvailable; Pending: 2 Unschedulable"
    marks: dict[str, Any] = {"annotations": {"scheduling.k8s.io/group-name": "ring"}}
    group, sibling = a_group("scheduling.volcano.sh/v1beta1"), a_pod("ring-1", metadata=marks)
    diagnosis = refuse(words, group, sibling, scheduler="volcano", **marks)
    assert get_code(diagnosis) == "GangIncomplete"
    assert "(group ring): 2 of 6, 4 are missing" in diagnosis.sentence.en
    full = [a_pod(f"ring-{number}", metadata=marks) for number in range(1, 6)]
    assert get_code(refuse(words, group, *full, scheduler="volcano", **marks)) == "GangWaits"


@pytest.mark.parametrize(
    "words",
    [
        (
            'running PreFilter plugin "Coscheduling": gang child pod not collect enough, gangName: '
            "lab/ring, podName: lab/job-0"
        ),
        (
            "0/4 nodes are available: gangGroup [lab/ring] basic check: memberGangs [lab/ring] child "
            "pod not collect enough, "
            "current gang: lab/ring, podName: lab/job-0."
        ),
    ],
)
def test_koordinators_gang_of_too_few_pods_is_no_error(words: str) -> None:
    diagnosis = refuse(words, scheduler="koord-scheduler")
    assert get_code(diagnosis) == "GangIncomplete"
    assert "(group ring)" in diagnosis.sentence.en


def test_koordinator_names_the_member_that_was_rejected_with_its_nodes() -> None:
    words = (
        f'GangGroup "lab/ring" gets rejected due to member Pod "lab/ring-4" is unschedulable with '
        f'reason "{COUNTS}", alreadyWaitForBound: 2'
    )
    diagnosis = refuse(words, scheduler="koord-scheduler")
    assert get_code(diagnosis) == "GangWaits"
    assert "ring-4 fits nowhere: 3 of 5 nodes have too little nvidia.com/gpu left" in diagnosis.sentence.en


def test_coscheduling_counts_the_siblings_that_exist() -> None:
    words = (
        "0/9 nodes are available: pre-filter pod job-0 cannot find enough sibling pods, current "
        "pods number: 5, minMember of group: 6."
    )
    diagnosis = refuse(words, **LABEL)
    assert diagnosis.sentence.en == (
        "The pod's gang is not complete, so none of its pods is placed: too few of them exist "
        "(group ring): 5 of 6, 1 is "
        "missing."
    )


@pytest.mark.parametrize(
    "words",
    [
        "0/1 nodes are available: 1 optimistic rejection in PostFilter.",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 60s at plugin Coscheduling.",
        (
            "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or "
            "more plugins asked to "
            "wait and no plugin rejected pod"
        ),
    ],
)
def test_a_pod_that_gave_its_node_back_points_at_the_member_that_had_none(words: str) -> None:
    other = a_pod("ring-4", metadata=LABEL, refusal=COUNTS)
    diagnosis = refuse(words, other, **LABEL)
    assert get_code(diagnosis) == "GangGaveBack"
    assert not diagnosis.other_obstacles
    assert diagnosis.sentence.en == (
        "This pod had found a node and gave it back, because another member of its pod group found none (group ring): "
        "ring-4: 3 of 5 nodes have too little nvidia.com/gpu left, or none is offered; "
        "2 of 5 nodes have a taint that the pod does not "
        "tolerate."
    )


@pytest.mark.parametrize(
    "words",
    [
        f"{COUNTS} PodGroup lab/ring gets rejected due to Pod job-0 is unschedulable even after PostFilter.",
        f'GangGroup "lab/ring" gets rejected due to member Pod "lab/job-0" is unschedulable with reason "{COUNTS}"',
    ],
)
def test_the_member_that_is_to_blame_does_not_wait_for_itself(words: str) -> None:
    diagnosis = refuse(words, **LABEL)
    assert get_code(diagnosis) == "ResourceShortOrMissing"
    assert diagnosis.sentence.en.startswith("3 of 5 nodes have too little nvidia.com/gpu left")
    assert [other.code for other in diagnosis.other_obstacles] == ["TaintNotTolerated"]


def test_kais_group_that_waits_for_pods_speaks_on_the_group_only() -> None:
    pod = a_pod(spec={"schedulerName": "kai-scheduler"}, metadata={"annotations": {"pod-group-name": "ring"}})
    note = "Job is not ready for scheduling. Waiting for 6 pods for SubGroup workers, currently 5 exist, 1 are gated."
    event = an_event("NotReady", note, pod="ring", kind="PodGroup", reporter="kai-scheduler", type="Normal")
    diagnosis = diagnose_case(pod, a_group("scheduling.run.ai/v2alpha2"), event)
    assert (diagnosis.state, get_code(diagnosis)) == ("not judged", "GangIncomplete")
    assert diagnosis.sentence.en.endswith(
        "(group ring): 5 of 6, 1 is missing, in subgroup workers; 1 of those that exist have a scheduling gate."
    )


def test_a_native_gang_without_all_its_pods_leaves_no_word_of_the_scheduler() -> None:
    spec = {"schedulingGroup": {"podGroupName": "ring"}}
    group = a_group("scheduling.k8s.io/v1alpha2", schedulingPolicy={"gang": {"minCount": 3}})
    diagnosis = diagnose_case(a_pod(spec=spec), a_pod("ring-1", spec=spec), group)
    assert get_code(diagnosis) == "GangIncomplete"
    assert "2 of 3, 1 is missing" in diagnosis.sentence.en


def test_volcanos_reason_for_a_whole_group_is_quoted_and_that_of_its_queue_explained() -> None:
    def refuse(reason: str) -> Diagnosis:
        words = (
            f"pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. Origin reason is: {reason}"
        )
        marks = {"annotations": {"scheduling.k8s.io/group-name": "ring"}}
        pods = [a_pod(name, spec={"schedulerName": "volcano"}, metadata=marks) for name in ("job-0", "job-1")]
        pods[0] = a_pod(spec={"schedulerName": "volcano"}, metadata=marks, refusal=words)
        group = {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"namespace": "lab", "name": "ring"}, "spec": {"minMember": 2, "queue": "night"},
            "status": {"phase": "Inqueue"},
        }  # fmt: skip
        return diagnose_case(*pods, group, an_event("FailedScheduling", words, reporter="volcano"))

    diagnosis = refuse("no super pod has two free nodes")
    assert get_code(diagnosis) == "GangWaits"
    assert "Volcano's reason for the whole group: no super pod has two free nodes" in diagnosis.sentence.en
    diagnosis = refuse("queue resource quota insufficient: insufficient nvidia.com/gpu")
    assert get_code(diagnosis) == "GroupNotEnqueued"

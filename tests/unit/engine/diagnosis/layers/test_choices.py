"""Failures after a node was chosen: plugins, Slurm, KAI's reservation pods; and the words of autoscalers."""

import pytest

from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code

JOB = {"labels": {"scheduler.slinky.slurm.net/slurm-jobid": "88"}}


def refuse(words: str, *objects: Json, scheduler: str = "default-scheduler", **metadata: object) -> Diagnosis:
    pod = a_pod(spec={"schedulerName": scheduler}, metadata=metadata, refusal=words)
    return diagnose_case(pod, an_event("FailedScheduling", words, reporter=scheduler), *objects)


@pytest.mark.parametrize("phase", ["Reserve", "Permit", "PreBind", "Bind"])
def test_a_plugin_that_failed_after_the_choice_is_named_with_its_phase(phase: str) -> None:
    diagnosis = refuse(f'running {phase} plugin "VolumeBinding": binding volumes: context deadline exceeded')
    assert get_code(diagnosis) == "ChoiceFailed"
    assert diagnosis.sentence.en == (
        f"default-scheduler had chosen a node for the pod, and its plugin VolumeBinding failed after that ({phase}): "
        "binding volumes: context deadline exceeded."
    )


def test_a_permit_that_ran_out_counts_no_nodes() -> None:
    diagnosis = refuse("0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin BudgetGate.")
    assert get_code(diagnosis) == "PermitTimedOut"
    assert "gave it back after 30s, because its plugin BudgetGate did not permit the bind" in diagnosis.sentence.en


def test_a_conflict_is_tried_again() -> None:
    words = (
        'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "one": the object has '
        "been modified; please apply your changes"
    )
    assert get_code(refuse(words)) == "BindConflict"


def test_a_pod_of_slurm_waits_for_its_job() -> None:
    diagnosis = refuse("0/3 nodes are available: no nodes assigned to job.", scheduler="slurm-bridge-scheduler", **JOB)
    assert get_code(diagnosis) == "SlurmWaits"
    assert diagnosis.obstacle
    assert "squeue -j 88" in diagnosis.obstacle.remedy.en
    # Counts of nodes are kube-scheduler's own.
    words = "0/3 nodes are available: 3 Insufficient cpu."
    assert get_code(refuse(words, scheduler="slurm-bridge-scheduler", **JOB)) == "InsufficientResource"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('running PreBind plugin "SlurmBridge": expression cannot be empty string', "SlurmGivesNoIndex"),
        ('running PreBind plugin "SlurmBridge": dial tcp: connection refused', "SlurmBindFailed"),
        ("0/3 nodes are available: Requested node configuration is not available.", "SlurmRefuses"),
        ("0/3 nodes are available: can't schedule pod with a resource claim.", "SlurmTakesNoClaims"),
        ("slurm node matches no Kube nodes", "SlurmNodeUnknown"),
        ("external job is no longer pending but has no nodes assigned", "SlurmJobEnded"),
    ],
)
def test_each_text_of_slurm_bridge_has_its_own_answer(words: str, code: str) -> None:
    assert get_code(refuse(words, scheduler="slurm-bridge-scheduler", **JOB)) == code


def test_a_reservation_pod_that_fails_is_named_with_its_last_words() -> None:
    states = {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"message": "unable to initialize NVML: ERROR_LIBRARY_NOT_FOUND"}},
    }
    reservation = a_pod(
        "gpu-reservation-a",
        metadata={"namespace": "kai-resource-reservation"},
        spec={"nodeName": "n-2"},
        status={"containerStatuses": [{"name": "r", **states}]},
    )
    note = (
        "Failed to bind pod lab/job-0 to node n-2: failed to reserve GPUs: failed waiting for GPU "
        "reservation pod to allocate: kai-resource-reservation/gpu-reservation-a"
    )
    events = [
        an_event(
            "Scheduled",
            "Successfully assigned pod lab/job-0 to node n-2 at node-pool default",
            reporter="kai-scheduler",
        ),
        an_event("BindingError", note, reporter="binder", time="2026-11-24T08:01:00Z"),
    ]
    diagnosis = diagnose_case(a_pod(spec={"schedulerName": "kai-scheduler"}), reservation, *events)
    assert get_code(diagnosis) == "ReservationWithoutDriver"
    assert diagnosis.sentence.en == (
        "Node n-2 was chosen, and KAI could not bind the pod, because its reservation pod "
        "kai-resource-reservation/gpu-reservation-a finds no NVIDIA library (NVML) there: CrashLoopBackOff: unable to "
        "initialize NVML: ERROR_LIBRARY_NOT_FOUND."
    )
    assert not diagnosis.other_obstacles


FULL = "0/2 nodes are available: 2 Insufficient amd.com/gpu."


def test_a_node_that_is_coming_makes_waiting_right() -> None:
    note = "pod triggered scale-up: [{pool-x 2->3 (max: 9)} {pool-y 0->1 (max: 4)}]"
    event = an_event(
        "TriggeredScaleUp", note, reporter="cluster-autoscaler", type="Normal", time="2026-11-24T08:29:00Z"
    )
    diagnosis = refuse(FULL, event, a_node("n"))
    assert get_code(diagnosis) == "AutoscalerAdds"
    assert diagnosis.sentence.en == (
        "The cluster autoscaler is adding a node for the pod: pool-x from 2 to 3 (at most 9), "
        "pool-y from 0 to 1 (at most "
        "4), since 08:29:00 UTC."
    )
    assert "InsufficientResource" in [other.code for other in diagnosis.other_obstacles]
    late = an_event("TriggeredScaleUp", note, reporter="cluster-autoscaler", time="2026-11-24T08:01:00Z")
    diagnosis = refuse(FULL, late, a_node("n"))
    assert get_code(diagnosis) == "InsufficientResource"
    assert "AutoscalerLate" in [other.code for other in diagnosis.other_obstacles]


@pytest.mark.parametrize(
    ("later", "code"),
    [
        ("0/3 nodes are available: 1 node(s) had volume node affinity conflict, 2 Insufficient amd.com/gpu.", "Added"),
        ("0/3 nodes are available: 3 Insufficient amd.com/gpu.", "Added"),
        # The node is there and still starts: waiting is right.
        (
            "0/3 nodes are available: 2 Insufficient amd.com/gpu, 1 node(s) had untolerated taint {gpu-not-ready: }.",
            "Adds",
        ),
        ("0/2 nodes are available: 2 Insufficient amd.com/gpu, 2 Insufficient cpu.", "Adds"),
    ],
)
def test_a_node_that_came_and_does_not_take_the_pod_is_not_waited_for(later: str, code: str) -> None:
    events = [
        {
            **an_event("FailedScheduling", FULL, time="2026-11-24T08:19:00Z"),
            "metadata": {"namespace": "lab", "name": "job-0.earlier"},
        },
        an_event(
            "TriggeredScaleUp",
            "pod triggered scale-up: [{pool-x 2->3 (max: 9)}]",
            reporter="cluster-autoscaler",
            type="Normal",
            time="2026-11-24T08:20:00Z",
        ),
        an_event("FailedScheduling", later, time="2026-11-24T08:26:00Z"),
    ]
    diagnosis = diagnose_case(a_pod(refusal=later), *events)
    assert get_code(diagnosis) == f"Autoscaler{code}"
    if "volume" in later:
        assert diagnosis.sentence.en == (
            "The cluster autoscaler has added a node (the scheduler counts 3, and 2 before), and the pod is still "
            "refused; on more nodes than before: 1 of 3 nodes can't reach the pod's volumes."
        )
        assert diagnosis.obstacle
        assert diagnosis.obstacle.who_acts == ["you", "administrator"]


def test_an_autoscaler_that_cannot_help_counts_its_node_groups_by_reason() -> None:
    note = (
        "pod didn't trigger scale-up: 3 node(s) had untolerated taint {tier: spot}, 2 Insufficient "
        "amd.com/gpu, 1 in backoff after failed scale-up, 2 max node group size reached"
    )
    diagnosis = refuse(
        FULL, an_event("NotTriggerScaleUp", note, reporter="cluster-autoscaler", type="Normal"), a_node("n")
    )
    assert get_code(diagnosis) == "InsufficientResource"
    (word,) = [other for other in diagnosis.other_obstacles if other.code == "AutoscalerCannot"]
    assert word.sentence.en == (
        "The cluster autoscaler adds no node for the pod: of its node groups, 3 have a taint that the pod does not "
        "tolerate {tier: spot}, nodes of 2 have too little amd.com/gpu, 1 is in backoff after a failed scale-up, "
        "2 are at the maximum size."
    )


def test_karpenters_failure_is_no_attempt_of_a_scheduler() -> None:
    event = an_event(
        "FailedScheduling", "Failed to schedule pod, no instance type has enough resources", reporter="karpenter"
    )
    diagnosis = diagnose_case(a_pod(), event)
    assert "AutoscalerCannot" in [
        obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle
    ]
    assert diagnosis.state == "not judged"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hami-schedular", "nothing is known of a scheduler of this name; hami-scheduler is the usual name of one"),
        ("team-scheduler", ""),
    ],
)
def test_a_name_that_is_nearly_a_schedulers_is_taken_for_misspelled(name: str, words: str) -> None:
    pod = a_pod(spec={"schedulerName": name})
    later = an_event("Pulled", "image", pod="another", time="2026-11-24T09:00:00Z")
    diagnosis = diagnose_case(pod, later)
    assert bool(diagnosis.obstacle) is bool(words)
    assert words in diagnosis.sentence.en

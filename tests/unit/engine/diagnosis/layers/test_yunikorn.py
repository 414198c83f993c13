"""YuniKorn's words on a pod: the latest decides, and each kind has its own answer.

Recorded are the events of a placed pod (``RECORDED``: a public run of Spark of 2024, with other names). The others
are built from the sources of yunikorn-k8shim (``pkg/cache/task.go``, ``application.go``, ``context.go``) and
yunikorn-core (``pkg/scheduler/objects/events``): no recording of a full queue is at hand.
"""

from pathlib import Path

import pytest

from ingest.cases.answers import explain_pod
from ingest.cases.read_case import read_case
from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code


def a_word(reason: str, note: str, minute: int = 1) -> Json:
    return an_event(reason, note, reporter="yunikorn", type="Normal", time=f"2026-11-24T08:{minute:02}:00Z")


RECORDED = """\
Name:         driver
Namespace:    lab
Node:         worker/172.18.0.3
Status:       Running
Events:
  Type    Reason             Age   From      Message
  ----    ------             ----  ----      -------
  Normal  Scheduling         20s   yunikorn  lab/driver is queued and waiting for allocation
  Normal  GangScheduling     20s   yunikorn  Pod belongs to the taskGroup driver, it will be scheduled as a gang member
  Normal  Scheduled          19s   yunikorn  Successfully assigned lab/driver to node worker
  Normal  PodBindSuccessful  19s   yunikorn  Pod lab/driver is successfully bound to node worker
  Normal  TaskCompleted      4s    yunikorn  Task lab/driver is completed
  Normal  Pulling            20s   kubelet   Pulling image "spark:3.5.2"
"""


def test_the_recorded_events_of_a_placed_pod_end_with_its_node(tmp_path: Path) -> None:
    """A member of a task group that was bound, and whose words about its queue are older than its bind."""
    file = tmp_path / "driver.txt"
    file.write_text(RECORDED)
    diagnosis = explain_pod(read_case([file]), "lab/driver").diagnosis
    assert (diagnosis.state, diagnosis.obstacle) == ("placed", None)
    assert "worker" in diagnosis.sentence.en


def refuse(*events: Json) -> Diagnosis:
    return diagnose_case(a_pod(spec={"schedulerName": "yunikorn"}), *events)


def test_yunikorns_queue_is_named_by_its_event_and_its_scheduler_is_not_blamed() -> None:
    note = (
        "Request 'u-1' does not fit in queue 'root.vision' (requested map[memory:8589934592 "
        "nvidia.com/gpu:2 pods:1 vcore:4000], available map[nvidia.com/gpu:1 vcore:90000])"
    )
    pod = a_pod(spec={"schedulerName": "yunikorn"})
    events = [
        an_event("Scheduling", "lab/job-0 is queued and waiting for allocation", reporter="yunikorn", type="Normal"),
        an_event("Informational", note, reporter="yunikorn", type="Normal", time="2026-11-24T08:01:00Z"),
    ]
    diagnosis = diagnose_case(pod, *events, a_node("n", allocatable={"nvidia.com/gpu": "8"}))
    assert get_code(diagnosis) == "QueueFull"
    assert diagnosis.sentence.en == (
        "YuniKorn refused the pod before it looked at a node: queue root.vision leaves too little "
        "nvidia.com/gpu for it: "
        "1 left, and the pod asks for 2."
    )
    assert not diagnosis.other_obstacles
    cleared = an_event(
        "Informational", "Request 'u-1' has become schedulable in queue 'root.vision'", reporter="yunikorn",
        time="2026-11-24T08:02:00Z",
    )  # fmt: skip
    # The scheduler has spoken, so it is not silent; its last words are the answer.
    diagnosis = diagnose_case(pod, *events, cleared)
    assert get_code(diagnosis) == "SchedulerSays"
    assert "has become schedulable" in diagnosis.sentence.en


@pytest.mark.parametrize(
    ("reason", "note", "code", "words"),
    [
        (
            "PodUnschedulable",
            "Task lab/job-0 is skipped from scheduling because the queue quota has been exceed",
            "YunikornQueueFull",
            "used up its quota: root.vision",
        ),
        (
            "Informational",
            "Unschedulable request 'u-1': Insufficient nvidia.com/gpu (12x); node(s) had untolerated taint(s) (3x); ",
            "RequestUnschedulable",
            "Insufficient nvidia.com/gpu (12x); node(s) had untolerated taint(s) (3x)",
        ),
        (
            "Informational",
            "Request 'u-1' exceeds the available user quota (requested map[vcore:4000], available map[vcore:100])",
            "UserQuotaFull",
            ": 0.1 of vcore left, and the pod asks for 4",
        ),
    ],
)
def test_other_words_of_yunikorn_have_their_own_answers(reason: str, note: str, code: str, words: str) -> None:
    pod = a_pod(spec={"schedulerName": "yunikorn"}, metadata={"labels": {"queue": "root.vision"}})
    diagnosis = diagnose_case(pod, an_event(reason, note, reporter="yunikorn", type="Normal"))
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", code)
    assert words in diagnosis.sentence.en
    if code == "YunikornQueueFull":
        assert diagnosis.obstacle
        assert "the pod's place in the queue is not known" in diagnosis.obstacle.likely_cause.en


def test_devices_are_named_before_other_resources_that_lack() -> None:
    diagnosis = refuse(
        a_word(
            "Informational",
            "Request 'u-1' does not fit in queue 'root.vision' (requested map[memory:8589934592 nvidia.com/gpu:4 "
            "vcore:4000], available map[memory:4294967296 nvidia.com/gpu:1 vcore:90000])",
        )
    )
    assert "too little nvidia.com/gpu for it: 1 left, and the pod asks for 4; also exceeded: memory" in (
        diagnosis.sentence.en
    )


def test_a_gang_whose_placeholders_timed_out_is_named_with_what_comes_next() -> None:
    timeout = a_word("GangScheduling", "Application app-1 placeholder has been timed out")
    diagnosis = refuse(timeout)
    assert (diagnosis.state, get_code(diagnosis)) == ("refused", "PlaceholdersTimedOut")
    assert "one by one" not in diagnosis.sentence.en
    resumed = a_word("GangScheduling", "Application app-1 resuming as non-gang application (SOFT)", 2)
    assert "places the pods one by one (style Soft)" in refuse(timeout, resumed).sentence.en
    # What it says later about the pod itself comes first.
    nodes = a_word("Informational", "Unschedulable request 'u-1': Insufficient nvidia.com/gpu (3x); ", 3)
    assert get_code(refuse(timeout, resumed, nodes)) == "RequestUnschedulable"


@pytest.mark.parametrize(
    ("reason", "note", "code", "layer"),
    [
        (
            "ApplicationFailed",
            "Application app-1 scheduling failed, reason: ApplicationRejectedFailure: failed to find queue root.nope",
            "RequestRejected",
            "queue",
        ),
        ("SchedulingFailed", "lab/job-0 scheduling failed, reason: queue is stopped", "RequestRejected", "queue"),
        (
            "Informational",
            "Unschedulable request 'u-1' with required node 'n1', no preemption victim found",
            "RequiredNodeFull",
            "nodes",
        ),
        ("PodBindFailure", "Failed to bind lab/job-0 to node n1, it will be retried", "BindTriedAgain", "bind"),
    ],
)
def test_what_is_not_about_a_quota_has_its_own_layer(reason: str, note: str, code: str, layer: str) -> None:
    diagnosis = refuse(a_word(reason, note))
    assert (diagnosis.state, get_code(diagnosis), diagnosis.layer) == ("refused", code, layer)


def test_the_same_words_of_another_reporter_are_not_yunikorns() -> None:
    forged = an_event("ApplicationFailed", "Application app-1 scheduling failed, reason: x", reporter="somebody")
    diagnosis = refuse(forged)
    assert diagnosis.obstacle is None or diagnosis.obstacle.code != "RequestRejected"

"""Questions about the pod's scheduler, each answered from a few facts.

Kubernetes reports a pod without a node by the condition PodScheduled=False with the reason Unschedulable, or
SchedulerError (k8s.io/api core/v1 ``PodReasonUnschedulable``, ``PodReasonSchedulerError``); a gate has another reason.
"""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import DiagnosisFacts, PodOnCluster, SchedulerState
from engine.diagnosis.outcome import TreeStep
from engine.diagnosis.scheduler_steps import answer_scheduler_questions, find_refusal_condition
from schemas.events import Condition, Request
from tests.support.builders.events import STARTED, a_request, a_summary
from tests.support.builders.layer_objects import to_english

POD = Evidence("pod", "/pods/job-0", STARTED, "api-server")
REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are available: …")
COMPLETE_DEVICE = a_request(count=1, memory_mib=None)


def a_pod(scheduler: str = "volcano", waited: float | None = 300, **fields: Any) -> PodOnCluster:
    """A pod that was created this many seconds ago."""
    created_at = None if waited is None else STARTED - timedelta(seconds=waited)
    plain: dict[str, Any] = {"scheduler": scheduler, "created_at": created_at, "requests": [COMPLETE_DEVICE]}
    return PodOnCluster(POD, **plain | fields)


def a_scheduler(name: str, implementation: str = "", decided: float | None = None) -> SchedulerState:
    """A scheduler that decided this many seconds ago."""
    last_decided_at = None if decided is None else STARTED - timedelta(seconds=decided)
    return SchedulerState(name, Evidence("scheduler", name, STARTED), implementation, last_decided_at)


def an_event(reporter: str, words: str = "FailedScheduling: no node") -> Evidence:
    return Evidence("event", "/events/1", STARTED, reporter, words=words)


def answer(pod: PodOnCluster | None, **more: Any) -> dict[str, TreeStep]:
    facts = DiagnosisFacts("default", "lab", "job-0", STARTED, pod=pod, **more)
    return {step.question: step for step in answer_scheduler_questions(facts)}


def list_codes(step: TreeStep) -> list[str]:
    return [obstacle.code for obstacle in step.obstacles]


@pytest.mark.parametrize(
    ("condition", "is_refusal"),
    [
        (REFUSED, True),
        (REFUSED.model_copy(update={"reason": "SchedulerError"}), True),
        (REFUSED.model_copy(update={"reason": "SchedulingGated"}), False),
        (REFUSED.model_copy(update={"status": "True"}), False),
        (REFUSED.model_copy(update={"type": "Ready"}), False),
    ],
)
def test_the_condition_of_a_scheduler_without_a_node_is_a_refusal(condition: Condition, is_refusal: bool) -> None:
    assert find_refusal_condition(a_pod(conditions=[condition])) == (condition if is_refusal else None)
    assert find_refusal_condition(None) is None


def test_a_pod_with_an_attempt_is_judged() -> None:
    steps = answer(a_pod(), attempt=a_summary())
    assert (steps["Judged"].answer, [evidence.kind for evidence in steps["Judged"].evidence]) == ("yes", ["attempt"])
    # What matters to an untried pod is not asked.
    assert list(steps) == ["Judged", "AsksForDevices"]


def test_a_pod_with_the_condition_of_a_scheduler_is_judged() -> None:
    steps = answer(a_pod(conditions=[REFUSED]), events=[an_event("volcano")], unknown=[Unknown("attempt", "not-given")])
    judged = steps["Judged"]
    assert (judged.answer, judged.not_known) == ("yes", (Unknown("attempt", "not-given"),))
    assert [evidence.words for evidence in judged.evidence] == [
        "PodScheduled=False: Unschedulable: 0/3 nodes are available: …",
        "FailedScheduling: no node",
    ]
    assert list(steps) == ["Judged", "AsksForDevices"]


@pytest.mark.parametrize(
    ("pod", "unknown", "expected"),
    [
        (a_pod(), [], "no"),
        # Without the index an earlier attempt may exist, and without the pod nobody can know.
        (a_pod(), [Unknown("attempt", "index-down")], "not known"),
        (None, [], "not known"),
    ],
)
def test_a_pod_without_attempt_and_condition_is_not_judged(
    pod: PodOnCluster | None, unknown: list[Unknown], expected: str
) -> None:
    judged = answer(pod, unknown=unknown, events=[an_event("kubelet")])["Judged"]
    assert (judged.answer, judged.evidence, list(judged.not_known)) == (expected, [an_event("kubelet")], unknown)


@pytest.mark.parametrize(
    ("requests", "expected", "numbers"),
    [
        (None, "not known", None),
        ([], "no", {}),
        ([a_request(count=0)], "no", {}),
        ([COMPLETE_DEVICE], "yes", {"worker.devices": 1}),
        ([a_request(count=2, memory_mib=8000)], "yes", {"worker.devices": 2, "worker.memory_mib": 8000}),
        (
            [a_request(memory_mib=None, memory_percent=50, cores_percent=30), a_request(container="sidecar", count=0)],
            "yes",
            {"worker.devices": 2, "worker.memory_percent": 50, "worker.cores_percent": 30},
        ),
    ],
)
def test_requested_devices_are_listed_by_container(
    requests: list[Request] | None, expected: str, numbers: dict[str, int] | None
) -> None:
    step = answer(a_pod(requests=requests), unknown=[Unknown("pod", "not-allowed")])["AsksForDevices"]
    assert step.answer == expected
    if numbers is None:
        assert (step.evidence, list(step.not_known)) == ((), [Unknown("pod", "not-allowed")])
    else:
        assert (step.evidence, step.not_known) == ([POD._replace(numbers=numbers)], ())


def test_requests_of_an_attempt_have_the_attempt_as_evidence() -> None:
    [evidence] = answer(None, attempt=a_summary())["AsksForDevices"].evidence
    numbers = {"worker.devices": 2, "worker.memory_mib": 20480}
    assert (evidence.kind, evidence.record, evidence.numbers) == ("attempt", "0f" * 16, numbers)


OTHERS = (a_scheduler("koord-scheduler", "Koordinator"), a_scheduler("hami-scheduler", "HAMi"))


@pytest.mark.parametrize(
    ("name", "schedulers", "expected"),
    [
        ("volcano", [a_scheduler("volcano"), *OTHERS], "yes"),
        # Kubernetes' own scheduler exists without an observation.
        ("default-scheduler", OTHERS, "yes"),
        ("volcano", OTHERS, "no"),
        # If no source reports any scheduler, the absence of this one means nothing.
        ("volcano", [], "not known"),
        ("volcano", None, "not known"),
        ("", OTHERS, "not known"),
    ],
)
def test_the_pods_scheduler_is_looked_for_among_those_that_were_observed(
    name: str, schedulers: list[SchedulerState] | None, expected: str
) -> None:
    unknown = [Unknown("schedulers", "not-allowed"), Unknown("pod", "not-given")]
    step = answer(a_pod(name, requests=[]), schedulers=schedulers, unknown=unknown)["SchedulerKnown"]
    assert (step.answer, step.is_end) == (expected, expected == "no")
    if expected == "not known":
        assert list(step.not_known) == unknown[:1] if name else unknown[1:]
    namesakes = [scheduler.source for scheduler in schedulers or () if scheduler.name == name]
    if expected == "yes":
        assert step.evidence == namesakes


def test_a_scheduler_without_an_observation_is_named_with_those_that_run() -> None:
    [obstacle] = answer(a_pod("volcano"), schedulers=OTHERS)["SchedulerKnown"].obstacles
    words = {name: to_english(word) for name, word in obstacle.words.items()}
    running = "default-scheduler, hami-scheduler, koord-scheduler"
    assert (obstacle.code, words) == ("SchedulerUnknown", {"scheduler": "volcano", "known": running})
    assert (obstacle.clauses, obstacle.evidence) == (["known"], [scheduler.source for scheduler in OTHERS])


def test_a_scheduler_that_wrote_an_event_about_the_pod_runs() -> None:
    events = [an_event("kubelet", "Pulled: image"), an_event("volcano")]
    steps = answer(a_pod("volcano"), schedulers=OTHERS, events=events)
    assert (steps["SchedulerKnown"].answer, steps["SchedulerKnown"].evidence) == ("yes", events)
    runs = steps["SchedulerRuns"]
    assert (runs.answer, runs.evidence, list_codes(runs)) == ("yes", [events[1]], ["SchedulerSays"])
    assert runs.obstacles[0].words == {"scheduler": "volcano", "words": "FailedScheduling: no node"}


def test_events_of_a_pod_without_a_scheduler_are_quoted_as_the_schedulers() -> None:
    [obstacle] = answer(a_pod(""), events=[an_event("")])["SchedulerRuns"].obstacles
    assert obstacle.words["scheduler"] == "the scheduler"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("volcanoo", "volcano"),
        ("vulcano", "volcano"),
        ("default-schedular", "default-scheduler"),
        ("kia-scheduler", None),
        ("kay-scheduler", None),
        ("hamy-scheduler", "hami-scheduler"),
        ("hami-scheduler2", "hami-scheduler"),
        # Two letters more, or another name before the usual end, are no slip.
        ("volcano-x", None),
        ("mine-scheduler", None),
        # Names under which schedulers are installed are not misspelled.
        ("yunikorn", None),
    ],
)
def test_a_name_that_differs_by_a_slip_from_a_usual_one_is_misspelled(name: str, near: str | None) -> None:
    step = answer(a_pod(name))["SchedulerKnown"]
    assert (step.answer, list_codes(step), step.is_end) == (
        ("no", ["SchedulerUnknown"], True) if near else ("not known", [], False)
    )
    if near:
        [obstacle] = step.obstacles
        assert (obstacle.words, obstacle.clauses) == ({"scheduler": name, "near": near}, ["near"])
        assert (obstacle.evidence, step.evidence) == ([POD], [POD])


@pytest.mark.parametrize(
    ("pod", "facts"),
    [
        (None, {}),
        (a_pod("volcanoo", 59), {}),
        (a_pod("volcanoo", None), {}),
        (a_pod("volcanoo", conditions=[Condition(type="PodScheduled", status="True")]), {}),
        (a_pod("volcanoo"), {"events": [an_event("volcanoo")]}),
        (a_pod("volcanoo"), {"schedulers": []}),
    ],
)
def test_a_new_pod_or_one_whose_scheduler_has_spoken_names_no_misspelled_scheduler(
    pod: PodOnCluster | None, facts: dict[str, Any]
) -> None:
    assert list_codes(answer(pod, **facts)["SchedulerKnown"]) == []
    assert list_codes(answer(a_pod("volcanoo", 60))["SchedulerKnown"]) == ["SchedulerUnknown"]


HAMI = a_scheduler("hami-scheduler", "HAMi")
SHARE = a_request(count=1, memory_mib=4000)


@pytest.mark.parametrize(
    ("pod", "facts", "expected"),
    [
        # Nobody asks for a pod of another scheduler, or without devices.
        (a_pod("hami-scheduler"), {"schedulers": [HAMI]}, None),
        (a_pod("default-scheduler", requests=[]), {"schedulers": [HAMI]}, None),
        (a_pod("default-scheduler", requests=[a_request(count=0)]), {"schedulers": [HAMI]}, None),
        (a_pod("default-scheduler"), {"schedulers": [HAMI]}, "no"),
        (a_pod("default-scheduler"), {"schedulers": [a_scheduler("hami-scheduler")]}, "not known"),
        (a_pod("default-scheduler"), {}, "not known"),
        # HAMi extends Kubernetes' own scheduler under its own name.
        (
            a_pod("default-scheduler"),
            {"schedulers": [a_scheduler("default-scheduler", "HAMi"), HAMI]},
            "not known",
        ),
    ],
)
def test_the_webhook_is_asked_about_for_devices_under_kubernetes_own_scheduler(
    pod: PodOnCluster, facts: dict[str, Any], expected: str | None
) -> None:
    unknown = [Unknown("schedulers", "not-allowed")]
    step = answer(pod, unknown=unknown, **facts).get("WebhookCalled")
    assert (step.answer if step else None) == expected
    if step and expected == "not known":
        assert list(step.not_known) == unknown


@pytest.mark.parametrize(
    ("request_of_pod", "is_called"),
    [
        # The scheduler of Kubernetes can place complete devices of plugins, and no shares.
        (COMPLETE_DEVICE, None),
        (a_request(memory_mib=None, memory_percent=100), None),
        (a_request(memory_mib=None, memory_percent=99), False),
        (a_request(memory_mib=None, cores_percent=1), False),
        (SHARE, False),
    ],
)
def test_kubernetes_own_scheduler_may_have_judged_complete_devices(
    request_of_pod: Request, is_called: bool | None
) -> None:
    pod = a_pod("default-scheduler", requests=[request_of_pod], conditions=[REFUSED])
    step = answer(pod, schedulers=[HAMI])["WebhookCalled"]
    if is_called is None:
        assert (step.answer, step.evidence, step.obstacles) == ("not known", [HAMI.source], ())
        return
    [obstacle] = step.obstacles
    assert (step.answer, step.is_end, obstacle.code) == ("no", True, "WebhookNotCalled")
    assert (step.evidence, obstacle.evidence) == ([HAMI.source, POD], [HAMI.source, POD])
    words = {"devices": request_of_pod.count, "scheduler": "default-scheduler", "known": "hami-scheduler"}
    assert (obstacle.words, obstacle.numbers) == (words, {"devices": request_of_pod.count})


def test_one_container_with_a_share_is_enough() -> None:
    pod = a_pod("default-scheduler", requests=[COMPLETE_DEVICE, SHARE], conditions=[REFUSED])
    assert answer(pod, schedulers=[HAMI])["WebhookCalled"].answer == "no"


@pytest.mark.parametrize(
    ("attempt", "is_asked"),
    [
        ({"scheduler": "default-scheduler", "judged_devices": 0}, True),
        # Its devices were judged: HAMi extends the scheduler.
        ({"scheduler": "default-scheduler", "judged_devices": 1}, False),
        ({"scheduler": "hami-scheduler", "judged_devices": 0}, False),
    ],
)
def test_an_attempt_of_a_scheduler_of_devices_shows_that_the_webhook_was_called(
    attempt: dict[str, Any], is_asked: bool
) -> None:
    pod = a_pod("default-scheduler", requests=[SHARE])
    assert ("WebhookCalled" in answer(pod, schedulers=[HAMI], attempt=a_summary(**attempt))) == is_asked


@pytest.mark.parametrize("more", [{"waited": None}, {"unknown": [Unknown("attempt", "index-down")]}, {"pod": None}])
def test_the_pods_age_and_the_index_are_needed_to_see_whether_the_scheduler_runs(more: dict[str, Any]) -> None:
    pod = None if "pod" in more else a_pod(waited=more.get("waited", 300))
    step = answer(pod, unknown=more.get("unknown", []), schedulers=[a_scheduler("volcano")])["SchedulerRuns"]
    assert (step.answer, step.obstacles, list(step.not_known)) == ("not known", (), more.get("unknown", []))


@pytest.mark.parametrize(("waited", "code"), [(0, "NotYetSeen"), (59, "NotYetSeen"), (60, "SchedulerSilent")])
def test_a_scheduler_is_given_a_minute_for_a_new_pod(waited: int, code: str) -> None:
    steps = answer(a_pod(waited=waited), unknown=[Unknown("schedulers", "not-allowed")])
    step = steps["SchedulerRuns"]
    [obstacle] = step.obstacles
    assert (obstacle.code, obstacle.numbers) == (code, {"waited_seconds": waited})
    assert not obstacle.clauses
    assert (step.answer, list(step.not_known)) == (
        "not known" if code == "NotYetSeen" else "no",
        [Unknown("schedulers", "not-allowed")],
    )
    assert obstacle.evidence == [POD]


def test_a_silent_scheduler_is_described_with_its_last_decision() -> None:
    schedulers = [a_scheduler("volcano", decided=7200), a_scheduler("volcano", decided=120), a_scheduler("volcano")]
    schedulers.append(a_scheduler("kai-scheduler", decided=1))
    [obstacle] = answer(a_pod(waited=600), schedulers=schedulers)["SchedulerRuns"].obstacles
    words = {name: to_english(word) for name, word in obstacle.words.items()}
    assert words == {"scheduler": "volcano", "waited": "10 min", "ago": "2 min"}
    assert obstacle.numbers == {"waited_seconds": 600, "decided_seconds_ago": 120}
    assert (obstacle.clauses, obstacle.evidence) == (["decided"], [POD, *(state.source for state in schedulers[:3])])

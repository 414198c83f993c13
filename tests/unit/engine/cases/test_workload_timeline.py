"""Time line of a workload: each event once, with the first and the last of its objects."""

from engine.cases.workload_timeline import build_workload_timeline
from engine.cases.workloads import CaseWorkload
from engine.snapshot.case_objects import collect_objects
from schemas.answers.workloads import TimelineStage
from schemas.json_types import Json
from tests.support.builders.workload_objects import NOW, a_job, a_pod, a_workload, an_owner, to_stamp

JOB = CaseWorkload("Job.batch", "ml", "train")
VOLCANO = "scheduling.volcano.sh/v1beta1"
GROUP = CaseWorkload("PodGroup.scheduling.volcano.sh", "ml", "g")


def list_stages(pods: list[Json], *objects: Json, family: tuple[CaseWorkload, ...] = (JOB,)) -> list[TimelineStage]:
    return build_workload_timeline(collect_objects([*objects, *pods]), family, pods, {}, NOW)


def a_bound_pod(name: str, stamp: str) -> Json:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}
    return a_pod(name, an_owner("Job", "train"), node="n0", conditions=[condition])


def test_an_event_has_its_first_and_last_time_and_the_number_of_its_objects() -> None:
    pods = [
        a_bound_pod("train-b", to_stamp(7)),
        a_bound_pod("train-a", to_stamp(5)),
        a_bound_pod("train-c", to_stamp(5)),
    ]
    owner, created, bound = list_stages(pods, a_job())
    assert (owner.event, owner.subject, owner.count, owner.after_seconds) == ("owner created", "Job/train", 1, None)
    assert (created.event, created.subject, created.count, created.after_seconds) == ("created", "Pod/train-a", 3, 60)
    # Of several at one time the first by name.
    assert (bound.event, bound.subject, bound.count, bound.after_seconds) == ("bound", "Pod/train-a", 3, 240)
    assert (bound.at, bound.last_at) == ("2026-01-01T12:05:00.000000Z", "2026-01-01T12:07:00.000000Z")


def test_the_time_between_events_is_rounded_to_milliseconds() -> None:
    *_, bound = list_stages([a_bound_pod("train-a", "2026-01-01T12:05:00.123456Z")], a_job())
    assert bound.after_seconds == 240.123


def test_within_a_second_the_order_of_the_layers_counts() -> None:
    """A pod is created before it is bound, whatever the fractions of their times."""
    pod = a_bound_pod("train-a", "2026-01-01T12:01:00.2Z")
    pod["metadata"]["creationTimestamp"] = "2026-01-01T12:01:00.7Z"
    stages = list_stages([pod], a_job())
    assert [(stage.event, stage.after_seconds) for stage in stages] == [
        ("owner created", None), ("created", 60.7), ("bound", 0.0),
    ]  # fmt: skip


def test_the_earliest_of_several_moments_of_one_object_counts() -> None:
    pod = a_pod("train-a", an_owner("Job", "train"))
    reports = [
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{minute}", "namespace": "ml"},
         "involvedObject": {"kind": "Pod", "name": "train-a", "namespace": "ml"}, "reason": "FailedScheduling",
         "message": f"0/{minute} nodes are available: {minute} Insufficient cpu.", "type": "Warning",
         "lastTimestamp": to_stamp(minute), "source": {"component": "default-scheduler"}}
        for minute in (5, 3)
    ]  # fmt: skip
    tried = next(stage for stage in list_stages([pod], a_job(), *reports) if stage.event == "tried")
    assert (tried.at, tried.count) == ("2026-01-01T12:03:00.000000Z", 1)


def test_a_group_is_queued_when_it_is_created() -> None:
    group = a_workload(VOLCANO, "PodGroup", "g", {"minMember": 2})
    [stage] = list_stages([], group, family=(GROUP,))
    assert (stage.event, stage.at, stage.subject) == ("queued", "2026-01-01T12:00:00.000000Z", "PodGroup/g")
    del group["metadata"]["creationTimestamp"]
    assert list_stages([], group, family=(GROUP,)) == []


def test_an_object_that_was_not_read_has_no_moments() -> None:
    assert list_stages([], family=(GROUP, JOB, CaseWorkload("Workload.kueue.x-k8s.io", "ml", "train"))) == []
    assert list_stages([], a_job(), family=(GROUP, JOB))[0].event == "owner created"

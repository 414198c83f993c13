"""Time line of a pod over its layers, and the time that it spent in each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diagnosis.layer_waits import list_waits
from engine.diagnosis.timeline import ORDER, Moment, build_timeline, list_workload_moments
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import Diagnosis, Layer
from schemas.json_types import Json
from tests.support.builders.layer_objects import NOW, a_node, a_pod, an_event, diagnose_case

START = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def a_stamp(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_workload(conditions: dict[str, tuple[str, int]], owner: str = "Pod", name: str = "job-0") -> Json:
    """A Workload; ``conditions``: status and seconds of the transition by type."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "namespace": "lab",
            "name": "w",
            "creationTimestamp": a_stamp(2),
            "ownerReferences": [{"kind": owner, "name": name, "controller": True}],
        },
        "spec": {"queueName": "night"},
        "status": {
            "admission": {"clusterQueue": "batch"},
            "conditions": [
                {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": a_stamp(seconds)}
                for kind, (status, seconds) in conditions.items()
            ],
        },
    }


def a_job() -> Json:
    metadata = {"namespace": "lab", "name": "train", "creationTimestamp": a_stamp(0)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def a_running_pod(**metadata: Any) -> Json:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": a_stamp(100)}
    running = {"name": "main", "state": {"running": {"startedAt": a_stamp(130)}}}
    return a_pod(
        metadata={"creationTimestamp": a_stamp(60), **metadata},
        spec={"nodeName": "n1"},
        status={"phase": "Running", "conditions": [scheduled], "containerStatuses": [running]},
    )


def list_events(diagnosis: Diagnosis) -> list[tuple[str, float | None]]:
    return [(moment.event, moment.after_seconds) for moment in diagnosis.timeline]


def list_waits_by_layer(diagnosis: Diagnosis) -> list[tuple[str, float, bool]]:
    return [(wait.layer, wait.waited_seconds, wait.until is None) for wait in diagnosis.waits]


def test_a_pod_of_a_job_has_the_moments_of_all_layers() -> None:
    owners = [{"kind": "Job", "name": "train", "controller": True}]
    diagnosis = diagnose_case(
        a_job(),
        a_workload({"QuotaReserved": ("True", 40), "Admitted": ("True", 45)}, "Job", "train"),
        an_event(
            "Started", "Admitted by clusterQueue batch", pod="train", kind="Job", type="Normal",
            reporter="batch/job-kueue-controller", time="2026-11-24T08:00:50Z",
        ),
        a_running_pod(ownerReferences=owners),
    )  # fmt: skip
    assert list_events(diagnosis) == [
        ("owner created", None), ("queued", 2.0), ("quota reserved", 38.0), ("admitted", 5.0), ("released", 5.0),
        ("created", 10.0), ("bound", 40.0), ("started", 30.0),
    ]  # fmt: skip
    assert [moment.text.en for moment in diagnosis.timeline][:4] == [
        "Job/train created", "queued in night", "quota reserved in batch", "admitted by batch",
    ]  # fmt: skip
    assert list_waits_by_layer(diagnosis) == [("queue", 43.0, False), ("nodes", 40.0, False), ("start", 30.0, False)]
    assert diagnosis.layer is None


def test_a_pod_that_kueue_holds_waits_in_the_queue_until_now() -> None:
    diagnosis = diagnose_case(a_pod(spec=GATE), a_workload({"QuotaReserved": ("False", 3)}))
    assert list_events(diagnosis) == [("created", None), ("queued", 2.0)]
    assert diagnosis.layer == "queue"
    assert list_waits_by_layer(diagnosis) == [("queue", (NOW - START).total_seconds() - 2, True)]


def test_an_admitted_pod_that_another_gate_holds_waits_at_the_gate() -> None:
    gates = {"schedulingGates": [{"name": "example.com/license"}]}
    diagnosis = diagnose_case(a_pod(spec=gates), a_workload({"QuotaReserved": ("True", 60), "Admitted": ("True", 60)}))
    assert diagnosis.layer == "gate"
    assert list_waits_by_layer(diagnosis) == [
        ("queue", 58.0, False), ("gate", (NOW - START).total_seconds() - 60, True),
    ]  # fmt: skip


def test_repeated_tries_are_the_first_and_the_last_with_their_number() -> None:
    event = an_event("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.", time="2026-11-24T08:00:10Z")
    series = event | {"series": {"count": 7, "lastObservedTime": "2026-11-24T08:20:00Z"}}
    diagnosis = diagnose_case(
        a_pod(refusal="0/1 nodes are available: 1 Insufficient cpu."), series, a_node("n1", allocatable={"cpu": "0"})
    )
    moments = {moment.event: moment for moment in diagnosis.timeline}
    assert moments["tried"].at.startswith("2026-11-24T08:00:02")
    assert moments["tried again"].at.startswith("2026-11-24T08:20:00")
    assert moments["tried again"].text.en == "last tried by default-scheduler, 7 times in all"
    assert (diagnosis.layer, list_waits_by_layer(diagnosis)) == ("nodes", [("nodes", 1800.0, True)])


def test_a_pod_without_its_object_waits_for_a_node_from_its_first_try_on() -> None:
    moments = [
        Moment("tried", START, "a record"),
        Moment("chosen", START + timedelta(seconds=36), "a record"),
        Moment("bound", START + timedelta(seconds=37), "a record"),
    ]
    waits = [(wait.layer, wait.waited_seconds) for wait in list_waits(moments, None, NOW)]
    assert waits == [("nodes", 36.0), ("bind", 1.0)]


def test_a_pod_that_was_just_bound_waits_for_its_start() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": a_stamp(100)}
    pod = a_pod(spec={"nodeName": "n1"}, status={"phase": "Pending", "conditions": [scheduled]})
    diagnosis = diagnose_case(pod)
    assert (diagnosis.layer, list_waits_by_layer(diagnosis)) == (
        "start",
        [("nodes", 100.0, False), ("start", 1700.0, True)],
    )


def test_a_pod_that_its_kubelet_refused_was_rejected_at_the_time_of_the_event() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": a_stamp(100)}
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected", "conditions": [scheduled]}
    refused = an_event("OutOfcpu", "Node didn't have enough resource: cpu, requested: 4, used: 2, capacity: 4",
                       reporter="kubelet", time="2026-11-24T08:01:42Z")  # fmt: skip
    diagnosis = diagnose_case(a_pod(spec={"nodeName": "n1"}, status=status), refused)
    assert diagnosis.state == "rejected"
    assert list_events(diagnosis)[-1] == ("rejected", 2.0)
    # It waits for nothing any more: nobody tries it again.
    assert [(layer, is_open) for layer, _, is_open in list_waits_by_layer(diagnosis)] == [
        ("nodes", False),
        ("start", False),
    ]


def test_the_records_of_one_try_are_one_moment() -> None:
    words = "0/1 nodes are available: 1 Insufficient cpu."
    once = an_event("FailedScheduling", words, time="2026-11-24T08:00:04Z")
    events = [event for event, _ in list_events(diagnose_case(a_pod(refusal=words), once))]
    assert events == ["created", "tried"]
    later = an_event("FailedScheduling", words, time="2026-11-24T08:20:00Z")
    assert "tried again" in [event for event, _ in list_events(diagnose_case(a_pod(refusal=words), later))]


def test_claims_and_hamis_choice_have_their_times() -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "lab", "name": "gpu"},
        "status": {"allocation": {"allocationTimestamp": a_stamp(90), "devices": {"results": []}}},
    }
    pod = a_running_pod(annotations={"hami.io/vgpu-time": str(int(START.timestamp()) + 80)})
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    events = dict(list_events(diagnose_case(pod, claim)))
    assert events == {"created": None, "chosen": 20.0, "allocated": 10.0, "bound": 10.0, "started": 30.0}


@pytest.mark.parametrize("value", ["99999999999999999", "-5", "soon", ""])
def test_a_time_of_hami_that_is_none_is_left_out(value: str) -> None:
    diagnosis = diagnose_case(a_running_pod(annotations={"hami.io/vgpu-time": value}))
    assert "chosen" not in dict(list_events(diagnosis))


def test_a_workload_without_a_pod_has_its_moments() -> None:
    workload = a_workload({"QuotaReserved": ("False", 9), "Evicted": ("True", 8)}, "Job", "train")
    moments = list(list_workload_moments(collect_objects([workload]), workload))
    assert [(moment.event, moment.time - START) for moment in moments] == [
        ("queued", timedelta(seconds=2)), ("evicted", timedelta(seconds=8)),
    ]  # fmt: skip


MOMENTS = st.lists(
    st.builds(
        Moment,
        st.sampled_from(ORDER),
        st.integers(0, 10_000).map(lambda tenths: START + timedelta(seconds=tenths / 10)),
        st.just("r"),
    ),
    max_size=12,
    unique_by=lambda moment: moment.event,
)


@given(MOMENTS, st.sampled_from([None, "queue", "gate", "nodes", "bind", "start"]))
def test_no_wait_is_negative_and_only_the_present_layer_is_open(moments: list[Moment], layer: Layer | None) -> None:
    timeline = build_timeline(moments)
    assert sorted(moment.event for moment in timeline) == sorted(moment.event for moment in moments)
    assert all(moment.after_seconds is None or moment.after_seconds >= 0 for moment in timeline)
    waits = list_waits(moments, layer, NOW)
    assert all(wait.waited_seconds >= 0 for wait in waits)
    assert [wait.layer for wait in waits if wait.until is None] in ([], [layer])


@given(st.permutations(list(ORDER)))
def test_the_order_of_the_sources_does_not_matter(events: list[Any]) -> None:
    moments = [Moment(event, START + timedelta(seconds=ORDER.index(event)), "r") for event in events]
    assert [moment.event for moment in build_timeline(moments)] == list(ORDER)


def test_a_condition_that_is_as_old_as_the_gate_is_no_try() -> None:
    """kube-scheduler changes reason and message of a gated pod's condition, and leaves the time of its status."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "message": "0/1 nodes are available: 1 Insufficient cpu.",
                 "lastTransitionTime": a_stamp(60)}  # fmt: skip
    pod = a_pod(metadata={"creationTimestamp": a_stamp(60)}, status={"phase": "Pending", "conditions": [condition]})
    released = an_event("Started", "Admitted", reporter="pod-kueue-controller", time=a_stamp(80))
    refused = an_event("FailedScheduling", "0/1 nodes", reporter="default-scheduler", time=a_stamp(81))
    diagnosis = diagnose_case(pod, released, refused)
    assert list_events(diagnosis) == [("created", None), ("released", 20.0), ("tried", 1.0)]

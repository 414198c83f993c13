"""Objects of the API server as facts of a diagnosis. Fields and their meaning: Kubernetes' API reference."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.objects import (
    find_owner_problem,
    to_claim,
    to_event_evidence,
    to_node_facts,
    to_observed_pod,
    to_problem,
    to_quota,
)
from schemas.json_types import Json

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
EARLY, LATE = "2026-11-27T08:00:00Z", "2026-11-27T09:00:00Z"


def parse(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def a_node(*conditions: Json, **annotations: str) -> Json:
    return {"metadata": {"name": "n1", "annotations": annotations}, "status": {"conditions": list(conditions)}}


@pytest.mark.parametrize(
    ("conditions", "is_ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        # The node controller has not heard from the node.
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "False"}], False),
        ([{"type": "DiskPressure", "status": "True"}], None),
        ([], None),
    ],
)
def test_a_node_is_ready_by_its_condition_and_unknown_without_it(conditions: list[Json], is_ready: bool | None) -> None:
    facts = to_node_facts(a_node(*conditions), "/api/v1/nodes/n1", NOW)
    assert (facts.name, facts.is_ready, facts.devices) == ("n1", is_ready, 0)


@pytest.mark.parametrize(
    ("value", "lock"),
    [
        # HAMi writes the time, and since v2.4 the pod behind it.
        (EARLY, (EARLY, "")),
        (f"{EARLY},ml,train-0", (EARLY, "ml/train-0")),
        (f"{EARLY},ml", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_node_has_the_lock_that_its_annotation_holds(value: str, lock: tuple[str, str] | None) -> None:
    held = to_node_facts(a_node(**{"hami.io/mutex.lock": value}), "/api/v1/nodes/n1", NOW).lock
    assert (held and (held.since, held.holder)) == (lock and (parse(lock[0]), lock[1]))


@pytest.mark.parametrize(
    ("claim", "storage_class", "phase", "waits"),
    [
        (None, None, "", None),
        # The API server has no phase for a claim that was just made.
        ({"spec": {}}, {"volumeBindingMode": "WaitForFirstConsumer"}, "Pending", True),
        ({"status": {"phase": "Bound"}}, {"volumeBindingMode": "Immediate"}, "Bound", False),
        ({"status": {"phase": "Lost"}}, {}, "Lost", None),
    ],
)
def test_a_claim_has_its_phase_and_waits_as_its_class_binds(
    claim: Json | None, storage_class: Json | None, phase: str, waits: bool | None
) -> None:
    facts = to_claim("data", "/claim", claim, storage_class, NOW)
    assert (facts.phase, facts.waits_for_pod, facts.deleted_at, facts.finalizers) == (phase, waits, None, ())


def test_a_claim_that_is_deleted_names_what_holds_it() -> None:
    finalizers = ["kubernetes.io/pvc-protection", 3]
    claim = {"metadata": {"deletionTimestamp": EARLY, "finalizers": finalizers}, "spec": {"volumeName": "pv-1"}}
    facts = to_claim("data", "/claim", claim, None, NOW)
    assert (facts.deleted_at, facts.finalizers) == (parse(EARLY), ("kubernetes.io/pvc-protection",))
    assert facts.volume == "pv-1"


def test_a_quota_has_its_amounts_as_texts() -> None:
    quota = {"metadata": {"name": "gpus"}, "status": {"hard": {"pods": 10}, "used": {"pods": "9"}}}
    facts = to_quota(quota, "/quotas", NOW)
    assert (facts.source.record, facts.hard, facts.used) == ("/quotas/gpus", {"pods": "10"}, {"pods": "9"})


@pytest.mark.parametrize(
    ("fields", "time", "times"),
    [
        ({"eventTime": EARLY}, EARLY, {"times": 1}),
        ({"eventTime": EARLY, "series": {"count": 7, "lastObservedTime": LATE}}, LATE, {"times": 7}),
        # The two fields of core/v1, which most events still come from.
        ({"deprecatedLastTimestamp": LATE, "deprecatedCount": 3, "eventTime": EARLY}, LATE, {"times": 3}),
        ({"deprecatedCount": "3", "deprecatedLastTimestamp": EARLY}, EARLY, {}),
        ({}, None, {"times": 1}),
    ],
)
def test_an_event_has_its_last_time_and_its_count(fields: Json, time: str | None, times: dict[str, int]) -> None:
    event = {"metadata": {"name": "e1"}, "reason": "FailedMount", "note": "timed out"} | fields
    evidence = to_event_evidence(event, "/events")
    assert (evidence.record, evidence.words) == ("/events/e1", "FailedMount: timed out")
    assert (evidence.time, evidence.numbers) == (time and parse(time), times)


@pytest.mark.parametrize(
    ("fields", "is_problem"),
    [
        ({}, True),
        ({"type": "Normal"}, False),
        ({"reportingController": "default-scheduler"}, False),
        ({"reportingController": "", "deprecatedSource": {"component": "kubelet"}}, True),
        ({"eventTime": ""}, False),
    ],
)
def test_a_problem_of_a_node_is_a_warning_of_its_kubelet(fields: Json, is_problem: bool) -> None:
    event = {"type": "Warning", "reportingController": "kubelet", "eventTime": EARLY, "note": "no such image"} | fields
    problem = to_problem(event)
    assert (problem and (problem.reason, problem.message, problem.at)) == (
        ("Failed", "no such image", parse(EARLY)) if is_problem else None
    )


def a_failure(owner: str, time: str, reason: str = "FailedCreate", note: str = "exceeded quota") -> Json:
    regarding = {"kind": "ReplicaSet", "name": owner}
    return {"reason": reason, "note": note, "regarding": regarding, "eventTime": time, "metadata": {"name": note}}


@pytest.mark.parametrize(
    ("events", "note"),
    [
        ([a_failure("web", EARLY, note="first"), a_failure("web", LATE, note="second")], "second"),
        ([a_failure("web", LATE, note="second"), a_failure("web", EARLY, note="first")], "second"),
        # The name of another owner, and one without the hyphen before the suffix.
        ([a_failure("api", EARLY), a_failure("we", EARLY)], None),
        ([a_failure("web", EARLY, reason="SuccessfulCreate")], None),
        ([a_failure("web", "")], None),
        ([], None),
    ],
)
def test_the_latest_failure_of_the_pods_owner_counts(events: list[Json], note: str | None) -> None:
    problem = find_owner_problem(events, "web-abc", "/events")
    assert (problem and (problem.workload, problem.problem.message)) == (note and ("ReplicaSet/web", note))


def a_container(**fields: Any) -> Json:
    return {"status": {"startTime": EARLY, "containerStatuses": [{"name": "main"} | fields]}}


@pytest.mark.parametrize(
    ("fields", "has_run"),
    [
        ({"state": {"running": {"startedAt": EARLY}}}, True),
        ({"state": {"terminated": {"startedAt": EARLY, "reason": "Error"}}}, True),
        ({"lastState": {"terminated": {"startedAt": EARLY, "reason": "OOMKilled"}}}, True),
        # runc could not start its process: Kubernetes gives such a container a time all the same.
        ({"state": {"terminated": {"startedAt": EARLY, "reason": "StartError"}}}, False),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, False),
    ],
)
def test_a_pod_has_run_where_one_of_its_containers_has(fields: Json, has_run: bool) -> None:
    assert to_observed_pod(a_container(**fields), "/pod", NOW).has_run is has_run


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, []),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}},
            ["container main: Back-off pulling image"],
        ),
        (
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
                "restartCount": 6,
            },
            ["container main: ended with exit code 1, started again 6 times: back-off 5m0s"],
        ),
        (
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "killed"}},
                "restartCount": 1,
            },
            ["container main: ended with exit code 137, OOMKilled: killed"],
        ),
    ],
)
def test_a_container_that_cannot_start_says_how_it_ended_last(fields: Json, messages: list[str]) -> None:
    problems = to_observed_pod(a_container(**fields), "/pod", NOW).problems
    assert [problem.message for problem in problems] == messages
    assert all(problem.at == parse(EARLY) for problem in problems)


def test_the_controller_of_a_pod_is_its_first_owner() -> None:
    owners = [{"kind": "Workload", "name": "w"}, {"kind": "Job", "name": "train", "controller": True}]
    metadata = {"uid": "1", "deletionTimestamp": EARLY, "ownerReferences": owners, "labels": {"app": "x", "n": 1}}
    pod = to_observed_pod({"metadata": metadata}, "/pod", NOW)
    assert (pod.owners, pod.is_being_deleted, pod.labels) == (("Job/train", "Workload/w"), True, {"app": "x"})


@pytest.mark.parametrize(
    ("resource", "vendor"),
    [
        ("huawei.com/Ascend910B3", "Ascend910B3"),
        ("huawei.com/Ascend910B4-1", "Ascend910B4-1"),
        ("iluvatar.ai/BI-V150-vgpu", "BI-V150"),
        ("cambricon.com/vmlu", "MLU"),
    ],
)
def test_requests_of_vendors_with_a_resource_for_each_chip_are_read(resource: str, vendor: str) -> None:
    container = {"name": "c", "resources": {"limits": {resource: 2}}}
    pod = to_observed_pod({"metadata": {"name": "p"}, "spec": {"containers": [container]}}, "/pod", NOW)
    assert [(request.vendor, request.count) for request in pod.requests or ()] == [(vendor, 2)]

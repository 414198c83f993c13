"""Causes of pods that a workload does not make by itself, from the fields of its objects."""

from datetime import UTC, datetime

import pytest

from engine.cases.unmade_causes import explain_without_workload, find_cause, find_misplaced_queue, list_unmade
from engine.cases.workloads import CaseWorkload
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from engine.snapshot.kinds import identify
from schemas.json_types import Json
from tests.support.builders.layer_objects import to_english
from tests.support.builders.workload_objects import a_job, a_workload

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)


def get_key(entry: Json) -> CaseWorkload:
    metadata = entry["metadata"]
    return CaseWorkload(identify(entry["apiVersion"], entry["kind"]), metadata["namespace"], metadata["name"])


def find(entry: Json, *objects: Json, pods: tuple[Json, ...] = ()) -> FoundObstacle | None:
    return find_cause(collect_objects([entry, *objects]), [get_key(entry)], pods, NOW)


def find_code(entry: Json, *objects: Json, pods: tuple[Json, ...] = ()) -> str:
    obstacle = find(entry, *objects, pods=pods)
    return obstacle.code if obstacle else ""


def a_member(name: str, *conditions: tuple[str, str], containers: tuple[Json, ...] = ()) -> Json:
    listed = [{"type": kind, "status": status} for kind, status in conditions]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"},
        "status": {"conditions": listed, "containerStatuses": list(containers)},
    }  # fmt: skip


def a_set(policy: str = "") -> Json:
    return a_workload("apps/v1", "StatefulSet", "db", {"podManagementPolicy": policy} if policy else {})


READY = ("Ready", "True")


@pytest.mark.parametrize(
    ("names", "first"),
    [
        # By number, as the controller makes them, not by name.
        (("db-10", "db-2"), "db-2"),
        (("db-2", "db-10", "db-1"), "db-1"),
        (("db-0",), "db-0"),
        # A name without a number counts as the first.
        (("db-1", "db-x"), "db-x"),
    ],
)
def test_the_pod_with_the_lowest_number_that_is_not_ready_stops_the_others(names: tuple[str, ...], first: str) -> None:
    members = tuple(a_member(name) for name in names)
    obstacle = find(a_set(), pods=(a_member("db-a-0", READY), *members))
    assert obstacle
    assert (obstacle.code, obstacle.words["first"], obstacle.clauses) == ("StatefulSetOrder", first, [])
    assert obstacle.words["workload"] == "StatefulSet/db"


@pytest.mark.parametrize(
    ("conditions", "stops"),
    [
        ([READY], False),
        ([("PodScheduled", "True"), READY], False),
        ([("Ready", "False")], True),
        ([("ContainersReady", "True")], True),
        ([], True),
    ],
)
def test_only_the_condition_ready_lets_the_next_pod_be_made(conditions: list[tuple[str, str]], stops: bool) -> None:
    assert bool(find_code(a_set(), pods=(a_member("db-0", *conditions),))) is stops


@pytest.mark.parametrize(
    ("policy", "code"), [("", "StatefulSetOrder"), ("OrderedReady", "StatefulSetOrder"), ("Parallel", "")]
)
def test_pods_are_made_in_order_unless_the_policy_is_another(policy: str, code: str) -> None:
    assert find_code(a_set(policy), pods=(a_member("db-0"),)) == code
    assert find_code(a_set(policy)) == ""


@pytest.mark.parametrize(
    ("containers", "why", "clauses"),
    [
        ([{"name": "main", "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
         "main: CrashLoopBackOff, 7 restarts", ["why"]),
        ([{"name": "side", "state": {"running": {}}}, {"name": "main", "state": {"waiting": {"reason": "Pulling"}}}],
         "main: Pulling, 0 restarts", ["why"]),
        ([{"name": "side", "state": {"running": {}}}], "", []),
    ],
)  # fmt: skip
def test_the_container_that_does_not_run_is_named(containers: list[Json], why: str, clauses: list[str]) -> None:
    obstacle = find(a_set(), pods=(a_member("db-0", containers=tuple(containers)),))
    assert obstacle
    assert (obstacle.words["why"], obstacle.clauses) == (why, clauses)


def a_node(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    ("selector", "nodes", "matching", "clauses"),
    [
        ({"gpu": "on"}, [a_node("n1"), a_node("n2", gpu="off")], 0, ["selector", "matching"]),
        # Nodes that match the selector may have a taint.
        ({"gpu": "on"}, [a_node("n1", gpu="on", zone="a"), a_node("n2")], 1, ["selector", "matching"]),
        ({"gpu": "on", "zone": "b"}, [a_node("n1", gpu="on", zone="a")], 0, ["selector", "matching"]),
        ({"gpu": "on"}, [], 0, ["selector"]),
        ({}, [a_node("n1"), a_node("n2")], 2, []),
    ],
)
def test_a_daemon_set_for_no_node_names_what_it_selects(
    selector: dict[str, str], nodes: list[Json], matching: int, clauses: list[str]
) -> None:
    spec = {"template": {"spec": {"nodeSelector": selector}}}
    obstacle = find(a_workload("apps/v1", "DaemonSet", "dcgm", spec, status={"desiredNumberScheduled": 0}), *nodes)
    assert obstacle
    assert (obstacle.code, obstacle.clauses) == ("DaemonSetWithoutNode", clauses)
    assert (obstacle.words["matching"], obstacle.words["total"]) == (matching, len(nodes))
    assert to_english(obstacle.words["selector"]) == ", ".join(f"{name}={value}" for name, value in selector.items())


@pytest.mark.parametrize(("status", "code"), [({"desiredNumberScheduled": 1}, ""), ({}, "")])
def test_a_daemon_set_whose_controller_counts_nodes_or_has_not_counted_has_none_of_it(status: Json, code: str) -> None:
    assert find_code(a_workload("apps/v1", "DaemonSet", "dcgm", {}, status=status)) == code


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [("Failed", "True", "JobFailed"), ("Failed", "False", ""), ("Complete", "True", ""), ("Suspended", "True", "")],
)
def test_only_a_job_with_the_condition_failed_has_failed(kind: str, status: str, code: str) -> None:
    condition = {"type": kind, "status": status, "reason": "BackoffLimitExceeded", "message": "limit reached"}
    job = a_job() | {"status": {"conditions": [{"type": "Suspended", "status": "False"}, condition]}}
    assert find_code(job) == code
    # Of another kind the same condition is none of a Job's.
    assert find_code(a_workload("apps/v1", "Deployment", "web", {}, status=job["status"])) == ""


def an_event(reason: str, time: str = "2026-01-01T12:00:00Z", name: str = "nightly") -> Json:
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.{reason}", "namespace": "ml"},
        "involvedObject": {"kind": "CronJob", "name": name, "namespace": "ml"}, "reason": reason, "message": "words",
        "lastTimestamp": time,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reasons", "code"),
    [
        (["UnknownTimeZone"], "CronTimeZoneUnknown"),
        (["UnparseableSchedule"], "CronScheduleUnreadable"),
        (["InvalidSchedule"], "CronScheduleUnreadable"),
        (["JobAlreadyActive"], "CronJobStillRuns"),
        (["MissSchedule"], "CronJobMissed"),
        (["TooManyMissedTimes"], "CronJobMissed"),
        (["FailedNeedsStart"], "CronJobMissed"),
        # An event of another reason says nothing, and the latest of the others counts.
        (["SuccessfulCreate"], ""),
        (["MissSchedule", "SuccessfulCreate"], "CronJobMissed"),
        (["UnknownTimeZone", "MissSchedule"], "CronJobMissed"),
        ([], ""),
    ],
)
def test_the_latest_event_that_says_why_no_job_was_started_counts(reasons: list[str], code: str) -> None:
    events = [an_event(reason, f"2026-01-01T12:0{minute}:00Z") for minute, reason in enumerate(reasons)]
    cron = a_workload("batch/v1", "CronJob", "nightly", {"schedule": "0 3 * * *", "timeZone": "Mars/Base"})
    obstacle = find(cron, *events, an_event("UnknownTimeZone", "2026-01-01T12:09:00Z", "other"))
    assert (obstacle.code if obstacle else "") == code
    if obstacle:
        assert (obstacle.words["zone"], obstacle.words["schedule"]) == ("Mars/Base", "0 3 * * *")


@pytest.mark.parametrize(
    ("suspend", "code"), [(True, "CronJobSuspended"), (False, "CronJobMissed"), (None, "CronJobMissed")]
)
def test_a_suspended_cron_job_is_not_explained_by_its_events(suspend: bool | None, code: str) -> None:
    spec = {} if suspend is None else {"suspend": suspend}
    assert find_code(a_workload("batch/v1", "CronJob", "nightly", spec), an_event("MissSchedule")) == code


def test_the_first_of_a_family_that_has_a_cause_is_named() -> None:
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}}
    members = [a_job("first"), a_job("second") | failed, a_job("third") | failed]
    family = [CaseWorkload("Job.batch", "ml", "gone"), *map(get_key, members)]
    obstacle = find_cause(collect_objects(members), family, (), NOW)
    assert obstacle
    assert obstacle.words["workload"] == "Job/second"
    assert [(source.kind, source.record) for source in obstacle.evidence] == [("owner", "ml/Job/second")]


def a_labeled_job(name: str = "train", **labels: str) -> Json:
    job = a_job(name)
    return job | {"metadata": job["metadata"] | {"labels": labels}}


def a_kueue_object(kind: str, name: str, namespace: str = "ml") -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


QUEUED = a_labeled_job(**{"kueue.x-k8s.io/queue-name": "night"})


@pytest.mark.parametrize(
    ("objects", "clauses"),
    [
        ([QUEUED], []),
        ([QUEUED, a_kueue_object("LocalQueue", "night")], []),
        ([QUEUED, a_kueue_object("LocalQueue", "day")], ["missing"]),
        ([QUEUED, a_kueue_object("LocalQueue", "night", "other")], ["missing"]),
        ([a_labeled_job()], None),
        ([QUEUED, a_kueue_object("Workload", "w")], None),
    ],
)
def test_kueue_has_not_seen_a_workload_that_names_a_queue_and_has_no_workload(
    objects: list[Json], clauses: list[str] | None
) -> None:
    family = (get_key(entry) for entry in objects if entry["kind"] != "LocalQueue")
    obstacle = explain_without_workload(collect_objects(objects), family, NOW)
    assert (list(obstacle.clauses) if obstacle else None) == clauses
    if obstacle:
        assert (obstacle.code, obstacle.words["queue"], obstacle.words["workload"]) == (
            "KueueNotSeen", "night", "Job/train",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("metadata", "field", "key"),
    [
        ({"annotations": {"kueue.x-k8s.io/queue-name": "night"}}, "annotation", "kueue.x-k8s.io/queue-name"),
        ({"labels": {"kueue.x-k8s.io/queue_name": "night"}}, "label", "kueue.x-k8s.io/queue_name"),
        ({"annotations": {"kueue.x-k8s.io/queuename": "night"}}, "annotation", "kueue.x-k8s.io/queuename"),
        # The label as Kueue reads it, and those that are about something else.
        ({"labels": {"kueue.x-k8s.io/queue-name": "night"}}, None, None),
        ({"labels": {"app.kubernetes.io/name": "night"}, "annotations": {"queue": "night"}}, None, None),
        ({}, None, None),
    ],
)
def test_a_queue_that_kueue_does_not_read_is_found_where_it_stands(
    metadata: Json, field: str | None, key: str | None
) -> None:
    job = a_job()
    job["metadata"] |= metadata
    plain = a_labeled_job("other")
    misplaced = find_misplaced_queue(collect_objects([plain, job]), [get_key(plain), get_key(job)])
    assert (misplaced.get("field"), misplaced.get("key"), misplaced.get("queue")) == (
        field,
        key,
        "night" if key else None,
    )


@pytest.mark.parametrize(
    ("objects", "with_purpose", "without_purpose"),
    [
        ([a_job()], ["Job/train"], ["Job/train"]),
        ([a_workload("batch/v1", "CronJob", "nightly", {"suspend": True})], ["CronJob/nightly"], []),
        (
            [a_workload("batch/v1", "CronJob", "nightly", {}), an_event("UnknownTimeZone")],
            ["CronJob/nightly"], ["CronJob/nightly"],
        ),
        ([a_workload("batch/v1", "CronJob", "nightly", {}), an_event("JobAlreadyActive")], ["CronJob/nightly"], []),
        ([a_workload("batch/v1", "CronJob", "nightly", {})], [], []),
        ([a_workload("batch/v1", "CronJob", "nightly", {"suspend": True}), a_job()], ["Job/train"], ["Job/train"]),
        (
            [a_workload("batch/v1", "CronJob", "nightly", {}), an_event("MissSchedule"), a_job()],
            ["Job/train", "CronJob/nightly"], ["Job/train", "CronJob/nightly"],
        ),
    ],
)  # fmt: skip
def test_workloads_that_wait_for_nothing_are_listed_only_where_nothing_waits_and_they_are_wanted(
    objects: list[Json], with_purpose: list[str], without_purpose: list[str]
) -> None:
    collected = collect_objects(objects)
    assert list(map(str, list_unmade(collected))) == with_purpose
    assert list(map(str, list_unmade(collected, with_purpose=False))) == without_purpose

"""Objects by kind and name, and the events about them, in both forms that Kubernetes writes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects, collect_objects, list_claim_names, parse_event

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u1"}}
CORE_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "p.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u1"},
    "reason": "FailedScheduling",
    "message": "no",
    "type": "Warning",
    "source": {"component": "default-scheduler"},
    "firstTimestamp": "2026-01-01T10:00:00Z",
    "lastTimestamp": "2026-01-01T10:05:00Z",
    "count": 3,
}
NEW_EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "p.2", "namespace": "default"},
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u0"},
    "reason": "Scheduled",
    "note": "yes",
    "reportingController": "default-scheduler",
    "eventTime": "2026-01-01T09:00:00.5Z",
}


def test_objects_are_found_in_lists_and_by_group() -> None:
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"namespace": "a", "name": "w"}}
    objects = collect_objects([{"kind": "List", "items": [POD, workload]}, "rubbish", {"kind": 3}])
    assert objects.find("Pod", "p", "default") == POD
    assert objects.select("Workload.kueue.x-k8s.io", "a") == [workload]
    assert objects.select("Workload.kueue.x-k8s.io", "b") == []
    assert objects.has_read("Pod")
    assert not objects.has_read("Node")


def test_events_of_both_forms_are_about_their_object_the_latest_first() -> None:
    objects = collect_objects([NEW_EVENT, CORE_EVENT])
    latest, first = objects.select_events("Pod", "p", "default")
    assert (latest.reason, latest.note, latest.count, latest.is_warning) == ("FailedScheduling", "no", 3, True)
    assert latest.time == datetime(2026, 1, 1, 10, 5, tzinfo=UTC)
    assert (first.reason, first.note, first.reporter) == ("Scheduled", "yes", "default-scheduler")
    assert [event.reason for event in objects.select_events("Pod", "p", "default", uid="u1")] == ["FailedScheduling"]
    assert objects.latest_time == latest.time


def test_a_kind_that_could_not_be_read_in_full_says_nothing_about_absence() -> None:
    assert not collect_objects([POD], unread=["Pod"]).has_read("Pod")


def a_time(minute: int) -> datetime:
    return datetime(2026, 1, 1, 10, minute, tzinfo=UTC)


def write_time(minute: int) -> str:
    return f"2026-01-01T10:{minute:02}:00Z"


@pytest.mark.parametrize(
    ("fields", "first", "last", "count"),
    [
        ({"firstTimestamp": write_time(1), "lastTimestamp": write_time(3), "count": 4}, 1, 3, 4),
        ({"eventTime": write_time(1), "series": {"count": 5, "lastObservedTime": write_time(7)}}, 1, 7, 5),
        ({"eventTime": write_time(1), "firstTimestamp": None, "lastTimestamp": None}, 1, 1, 1),
        (
            {"deprecatedFirstTimestamp": write_time(1), "deprecatedLastTimestamp": write_time(2), "deprecatedCount": 2},
            1,
            2,
            2,
        ),
        ({"lastTimestamp": write_time(3)}, 3, 3, 1),
        ({"firstTimestamp": write_time(3), "count": "many"}, 3, 3, 1),
    ],
)
def test_an_event_has_the_times_and_the_count_of_its_form(
    fields: dict[str, Any], first: int, last: int, count: int
) -> None:
    event = parse_event({"metadata": {"creationTimestamp": write_time(9)}, **fields})
    assert (event.first_time, event.time, event.count) == (a_time(first), a_time(last), count)


def test_an_event_without_times_was_at_its_creation() -> None:
    event = parse_event({"metadata": {"creationTimestamp": write_time(9)}})
    assert (event.first_time, event.time, event.is_warning) == (None, a_time(9), False)
    assert parse_event({}).time is None


@pytest.mark.parametrize(
    "fields",
    [
        {"reportingController": "r"},
        {"reportingComponent": "r", "source": {"component": "s"}},
        {"source": {"component": "r"}, "reportingComponent": ""},
        {"deprecatedSource": {"component": "r"}},
    ],
)
def test_the_reporter_of_an_event_is_in_one_of_four_fields(fields: dict[str, Any]) -> None:
    assert parse_event(fields).reporter == "r"


def test_events_without_times_come_last() -> None:
    timeless = {**NEW_EVENT, "reason": "Timeless", "eventTime": None, "metadata": {"name": "p.3"}}
    objects = collect_objects([timeless, NEW_EVENT, CORE_EVENT])
    expected = ["FailedScheduling", "Scheduled", "Timeless"]
    assert [event.reason for event in objects.list_events()] == expected
    assert [event.reason for event in objects.select_events("Pod", "p", "default")] == expected


def test_events_without_the_uid_of_their_object_are_about_every_one_of_its_name() -> None:
    anonymous = {**CORE_EVENT, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
    assert len(collect_objects([anonymous]).select_events("Pod", "p", "default", uid="u7")) == 1
    assert collect_objects([anonymous]).select_events("Pod", "p", "other") == []


def test_objects_that_events_are_about_are_listed_by_kind() -> None:
    node = {**CORE_EVENT, "metadata": {"name": "n.1"}, "involvedObject": {"kind": "Node", "name": "n"}}
    objects = collect_objects([CORE_EVENT, node])
    assert (objects.list_event_subjects("Pod"), objects.list_event_subjects("Node")) == (
        [("default", "p")],
        [("", "n")],
    )


def test_an_object_without_a_namespace_is_in_the_one_where_kubectl_puts_it() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    objects = collect_objects([POD, job, node])
    assert objects.find("Pod", "p", "default") == POD
    assert objects.find("Pod", "p") is None
    assert objects.find("Job.batch", "j", "default") == objects.find("Job.batch", "j") == job
    assert objects.find("Job.batch", "j", "other") is None
    assert objects.find("Node", "n") == node


def test_of_two_objects_of_one_name_the_last_counts_and_nameless_ones_are_different() -> None:
    later = {**POD, "metadata": {"name": "p", "uid": "u2"}}
    nameless = {"apiVersion": "v1", "kind": "Pod"}
    objects = collect_objects([POD, later, nameless, nameless])
    assert objects.select("Pod") == [later, nameless, nameless]
    assert list(objects.iterate_objects()) == objects.select("Pod")


@pytest.mark.parametrize(
    ("listed", "is_read"),
    [
        ({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClassList", "items": []}, True),
        (
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClassList", "items": [], "metadata": {"continue": "x"}},
            False,
        ),
        ({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClassList"}, False),
        ({"apiVersion": "other.io/v1", "kind": "StorageClassList", "items": []}, False),
    ],
)
def test_a_complete_list_proves_that_there_are_no_others(listed: dict[str, Any], is_read: bool) -> None:
    assert collect_objects([listed]).has_read(kinds.STORAGE_CLASS) is is_read
    assert not collect_objects([listed], unread=[kinds.STORAGE_CLASS]).has_read(kinds.STORAGE_CLASS)


def test_lists_by_name_or_namespace_prove_nothing() -> None:
    assert not collect_objects([{"apiVersion": "v1", "kind": "PodList", "items": []}]).has_read("Pod")
    assert not collect_objects([{"apiVersion": "v1", "kind": "NodeList", "items": []}]).has_read("Node")
    claims = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "items": []}
    assert collect_objects([claims]).has_read(kinds.VOLUME_CLAIM)


def test_a_pod_names_its_claims_and_those_that_are_made_for_it() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "emptyDir": {}},
    ]
    assert list_claim_names({"metadata": {"name": "p"}, "spec": {"volumes": volumes}}) == ["models", "p-b"]


@pytest.mark.parametrize(
    "entry",
    [
        {"metadata": {"creationTimestamp": write_time(9)}},
        {"status": {"startTime": write_time(9)}},
        {"status": {"conditions": [{"lastTransitionTime": write_time(9), "lastHeartbeatTime": write_time(8)}]}},
        {"status": {"conditions": [{"lastTransitionTime": write_time(8)}, {"lastHeartbeatTime": write_time(9)}]}},
    ],
)
def test_objects_are_as_old_as_the_latest_time_in_them(entry: dict[str, Any]) -> None:
    older = {"kind": "Node", "metadata": {"name": "n", "creationTimestamp": write_time(5)}}
    assert collect_objects([older, {"kind": "Pod", **entry}]).latest_time == a_time(9)
    assert collect_objects([{"kind": "Pod"}]).latest_time is None


def test_a_value_is_derived_once_for_each_function() -> None:
    calls = []

    def count_pods(objects: CaseObjects) -> int:
        calls.append(objects)
        return len(objects.select("Pod"))

    objects = collect_objects([POD])
    assert (objects.derive(count_pods), objects.derive(count_pods)) == (1, 1)
    assert calls == [objects]


@pytest.mark.parametrize("name", [".", "..", "../../etc/passwd", "a%2fb"])
def test_an_object_of_a_name_that_kubernetes_refuses_is_left_out(name: str) -> None:
    """Names of objects are segments of paths (Kubernetes, "Object Names and IDs")."""
    event = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "ml"}}
    objects = [
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "ml"}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": name}},
        {**event, "involvedObject": {"kind": "Pod", "name": "p", "namespace": name}},
    ]
    assert collect_objects(objects).tables == {}

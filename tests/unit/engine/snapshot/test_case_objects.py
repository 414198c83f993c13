"""Objects by kind and name, and the events about them, in both forms that Kubernetes writes."""

from datetime import UTC, datetime

from engine.snapshot.case_objects import collect_objects

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

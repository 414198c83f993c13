"""The group that a pod's marks name, in the fields of each scheduler of gangs, and its members."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.group_members import (
    GROUP_ANNOTATIONS,
    Group,
    find_group,
    find_group_name,
    find_group_of_pod,
    find_refused_member,
    has_group,
    iterate_group_statements,
    list_members,
)
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
MARKS: list[tuple[str, Json, str, str]] = [
    ("KAI", {"annotations": {"pod-group-name": "ring"}}, "scheduling.run.ai/v2alpha2", "minMember"),
    ("Volcano", {"annotations": {"scheduling.k8s.io/group-name": "ring"}}, "scheduling.volcano.sh/v1beta1",
     "minMember"),
    ("scheduler-plugins", {"labels": {"scheduling.x-k8s.io/pod-group": "ring"}}, "scheduling.x-k8s.io/v1alpha1",
     "minMember"),
    ("scheduler-plugins", {"labels": {"pod-group.scheduling.sigs.k8s.io": "ring"}}, "scheduling.sigs.k8s.io/v1alpha1",
     "minMember"),
    ("Koordinator", {"labels": {"gang.scheduling.koordinator.sh/name": "ring"}}, "", "min-available"),
    ("Koordinator", {"annotations": {"gang.scheduling.koordinator.sh/name": "ring"}}, "", "min-available"),
    ("Kubernetes", {}, "scheduling.k8s.io/v1alpha2", "minCount"),
]  # fmt: skip
NATIVE = {"schedulingGroup": {"podGroupName": "ring"}}


def a_member(name: str, marks: Json, namespace: str = "lab", phase: str = "Pending", **status: Any) -> Json:
    spec = {} if marks else NATIVE
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **marks}, "spec": spec,
        "status": {"phase": phase, **status},
    }  # fmt: skip


def a_group(version: str, minimum: object = 3, **more: Any) -> Json:
    gang = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    spec = gang if version.startswith("scheduling.k8s.io") else {"minMember": minimum}
    metadata = {"name": "ring", "namespace": "lab"}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": {**spec, **more}}


def get_names(members: Any) -> list[str]:
    return [member["metadata"]["name"] for member in members]


@pytest.mark.parametrize(("system", "marks", "version", "field"), MARKS)
def test_each_schedulers_mark_names_the_group_with_its_minimum_and_members(
    system: str, marks: Json, version: str, field: str
) -> None:
    if not version:
        location = next(iter(marks))
        marks = {location: {**marks[location], "gang.scheduling.koordinator.sh/min-available": "3"}}
    pods = [
        a_member("ring-0", marks), a_member("ring-1", marks, phase="Running"),
        a_member("ring-2", marks, phase="Succeeded"), a_member("ring-3", marks, phase="Failed"),
        a_member("ring-4", marks, "other"), a_member("single", {"labels": {"app": "ring"}}),
    ]  # fmt: skip
    objects = collect_objects([*pods, *([a_group(version)] if version else [])])
    group = find_group_of_pod(pods[0], objects, "lab")
    assert group
    assert (group.system, group.name, group.field, group.minimum) == (system, "ring", field, 3)
    assert get_names(group.members) == ["ring-0", "ring-1"]
    assert (group.object is not None) is bool(version)
    assert (has_group(pods[0]), find_group_name(pods[0])) == (True, "ring")
    assert (has_group(pods[-1]), find_group_name(pods[-1])) == (False, "")
    assert find_group_of_pod(pods[-1], objects, "lab") is None
    if version:
        kind = f"PodGroup.{version.partition('/')[0]}"
        assert get_names(list_members(objects, kind, "lab", "ring")) == ["ring-0", "ring-1", "ring-2", "ring-3"]
        assert list_members(objects, kind, "lab", "other") == []


@pytest.mark.parametrize(("minimum", "expected"), [(1, 1), (0, 0), ("3", 0), (True, 0), (None, 0), (2.0, 0)])
def test_a_minimum_that_is_no_whole_number_is_not_known(minimum: object, expected: int) -> None:
    pod = a_member("ring-0", {"labels": {"scheduling.x-k8s.io/pod-group": "ring"}})
    objects = collect_objects([pod, a_group("scheduling.x-k8s.io/v1alpha1", minimum)])
    group = find_group_of_pod(pod, objects, "lab")
    assert group
    assert (group.minimum, type(group.minimum)) == (expected, int)


@pytest.mark.parametrize(("minimum", "expected"), [("3", 3), ("0", 0), ("three", 0), ("", 0)])
def test_koordinators_minimum_is_a_text(minimum: str, expected: int) -> None:
    name, least = "gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available"
    group = find_group_of_pod(a_member("ring-0", {"annotations": {name: "ring", least: minimum}}), None, "lab")
    assert group
    assert (group.minimum, list(group.members)) == (expected, [])


def test_annotations_that_name_a_group_are_those_of_the_marks() -> None:
    expected = [next(iter(marks["annotations"])) for _, marks, _, _ in MARKS if "annotations" in marks]
    assert list(GROUP_ANNOTATIONS) == expected


def test_a_group_is_that_of_the_present_pod_only() -> None:
    pod = PodOnCluster(Evidence("pod", "lab/ring-0"), annotations={"pod-group-name": "ring"})
    facts = DiagnosisFacts("default", "lab", "ring-0", NOW, pod=pod)
    group = find_group(facts)
    assert group
    assert group.name == "ring"
    native = DiagnosisFacts("default", "lab", "ring-0", NOW, pod=PodOnCluster(Evidence("pod", "p"), spec=NATIVE))
    group = find_group(native)
    assert group
    assert group.system == "Kubernetes"
    # Of an attempt that others followed the present pod may have other marks.
    assert find_group(DiagnosisFacts("default", "lab", "ring-0", NOW, pod=pod, is_latest=False)) is None
    assert find_group(DiagnosisFacts("default", "lab", "ring-0", NOW)) is None


def test_phase_queue_and_topology_of_a_group_are_those_of_its_object() -> None:
    constraints = {"topology": [{"mode": "Desired"}, {"key": "rack"}, {"key": "zone"}]}
    entry = a_group("scheduling.k8s.io/v1alpha2", queue="night", schedulingConstraints=constraints)
    group = Group("Kubernetes", "ring", "minCount", object=entry | {"status": {"phase": "Inqueue"}})
    assert (group.phase, group.queue, group.topology) == ("Inqueue", "night", "rack")
    empty = Group("Kubernetes", "ring", "minCount")
    assert (empty.phase, empty.queue, empty.topology, empty.minimum) == ("", "", "", 0)


def an_event(note: str, minute: int, name: str = "ring") -> Json:
    return {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "lab", "name": f"{name}.{minute}"},
        "regarding": {"kind": "PodGroup", "namespace": "lab", "name": name}, "reason": "NotReady", "note": note,
        "reportingController": "kai-scheduler", "eventTime": f"2026-11-24T08:{minute:02}:00Z",
    }  # fmt: skip


def test_events_on_the_group_come_before_its_conditions_the_latest_first() -> None:
    conditions = [
        {"type": "A", "status": "False", "message": "not so"},
        {"type": "B", "status": "True", "reason": "R", "message": "so", "lastTransitionTime": "2026-11-24T08:05:00Z"},
    ]
    entry = a_group("scheduling.run.ai/v2alpha2") | {"status": {"conditions": conditions}}
    objects = collect_objects([entry, an_event("old", 1), an_event("new", 2), an_event("other", 3, "other")])
    facts = DiagnosisFacts("default", "lab", "ring-0", NOW, objects=objects)
    group = Group("KAI", "ring", "minMember", object=entry)
    statements = list(iterate_group_statements(facts, group))
    assert [(statement.text, statement.reason) for statement in statements] == [
        ("new", "NotReady"), ("old", "NotReady"), ("so", "R"),
    ]  # fmt: skip
    assert [statement.evidence.kind for statement in statements] == ["event", "event", "group"]
    assert statements[0].evidence.words == "NotReady: new"
    assert statements[2].evidence.time == datetime(2026, 11, 24, 8, 5, tzinfo=UTC)
    assert (
        list(iterate_group_statements(DiagnosisFacts("default", "lab", "ring-0", NOW), Group("KAI", "ring", ""))) == []
    )


COUNTS = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."


def a_judged_member(name: str, message: str = COUNTS, kind: str = "PodScheduled", status: str = "False") -> Json:
    condition = {"type": kind, "status": status, "reason": "Unschedulable", "message": message}
    return a_member(name, {}, conditions=[condition])


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ([a_judged_member("ring-1")], "ring-1"),
        ([a_judged_member("ring-1", COUNTS.replace("available", "unavailable"))], "ring-1"),
        # The pod itself is no other member.
        ([a_judged_member("ring-0")], None),
        ([a_judged_member("ring-0"), a_judged_member("ring-2"), a_judged_member("ring-3")], "ring-2"),
        # Words about the group are not about the member's nodes.
        ([a_judged_member("ring-1", "pod group is not ready")], None),
        ([a_judged_member("ring-1", "0/5 nodes are available: gang is waiting")], None),
        ([a_judged_member("ring-1", kind="Ready")], None),
        ([a_judged_member("ring-1", status="True")], None),
        ([], None),
    ],
)
def test_another_member_is_refused_where_a_scheduler_counts_nodes_for_it(members: list[Json], name: str | None) -> None:
    facts = DiagnosisFacts("default", "lab", "ring-0", NOW)
    refused = find_refused_member(facts, Group("Kubernetes", "ring", "minCount", members=members))
    assert (refused[0] if refused else None) == name
    if refused:
        assert refused[1].evidence.record == f"/api/v1/namespaces/lab/pods/{name}"

"""Snapshots of plain objects, changes of them, and objects that are left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.snapshot import kinds
from engine.snapshot.reading import change_snapshot, read_snapshot
from engine.snapshot.snapshot import Snapshot
from tests.support.builders.cluster import a_node, a_pod


def list_sentences(snapshot: Snapshot) -> list[str]:
    return [rejected.to_sentence() for rejected in snapshot.rejected.values()]


def test_a_node_adds_up_the_pods_on_it() -> None:
    snapshot = read_snapshot(
        [a_pod("a", node="n1", cpu="1", gpu="2"), a_node("n1"), a_pod("b", node="n1", cpu="500m"), a_pod("c", cpu="4")]
    )
    assert snapshot.nodes["n1"].requested == {"cpu": 1500, "nvidia.com/gpu": 2}
    assert [pod.name for pod in snapshot.nodes["n1"].pods] == ["a", "b"]
    assert snapshot.pods["default", "c"].node == ""


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_left_out(phase: str) -> None:
    ended = a_pod("a", node="n1", cpu="1") | {"status": {"phase": phase}}
    snapshot = read_snapshot([a_node("n1"), ended])
    assert snapshot.nodes["n1"].requested == {}
    assert not snapshot.pods


def test_a_pod_whose_deletion_has_begun_still_holds_its_request() -> None:
    pod = a_pod("a", node="n1", cpu="1")
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = read_snapshot([a_node("n1"), pod])
    assert snapshot.nodes["n1"].requested == {"cpu": 1000}
    assert snapshot.pods["default", "a"].is_deleted


def test_lists_are_flattened_and_their_items_take_the_kind_of_a_typed_list() -> None:
    node = a_node("n1")
    del node["kind"], node["apiVersion"]
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [node]}
    snapshot = read_snapshot([{"kind": "List", "apiVersion": "v1", "items": [nodes, a_pod("a", node="n1")]}])
    assert list(snapshot.nodes) == ["n1"]
    assert len(snapshot.nodes["n1"].pods) == 1


def test_a_kind_of_another_group_is_not_taken_for_a_node() -> None:
    foreign = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"namespace": "x", "name": "n1"}}
    snapshot = read_snapshot([foreign])
    assert not snapshot.nodes
    assert snapshot.get_objects("Node.longhorn.io") == {("x", "n1"): foreign}


def test_waiting_pods_with_a_nominated_node_are_found_by_it() -> None:
    waiting, bound = a_pod("a"), a_pod("b", node="n1")
    for pod in (waiting, bound):
        pod["status"]["nominatedNodeName"] = "n1"
    snapshot = read_snapshot([a_node("n1"), waiting, bound])
    assert [pod.name for pod in snapshot.nominated["n1"]] == ["a"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("spec", "nodeName"), 7, "Pod default/p1: spec.nodeName is 7, not a string."),
        (("spec", "containers"), {}, "Pod default/p1: spec.containers is a mapping of 0 entries, not a list."),
        (("spec", "containers"), ["x"], "Pod default/p1: spec.containers[0] is 'x', not a mapping."),
        (("spec", "priority"), 2**40, "Pod default/p1: spec.priority is beyond 32 bits."),
        (
            ("spec", "overhead"),
            {"cpu": "lots"},
            "Pod default/p1: spec.overhead[cpu] is 'lots', which is not a quantity",
        ),
        (("spec", "overhead"), {"cpu": "9Ei"}, "Pod default/p1: spec.overhead[cpu] is '9Ei', which is beyond 64 bits."),
        (("metadata", "labels"), {"a": None}, "Pod default/p1: metadata.labels[a] is None, not a string."),
    ],
)
def test_a_malformed_object_is_left_out_with_field_and_cause(path: tuple[str, str], value: Any, sentence: str) -> None:
    pod = a_pod(node="n1", cpu="1")
    pod[path[0]][path[1]] = value
    snapshot = read_snapshot([a_node("n1"), pod])
    assert snapshot.nodes["n1"].pods == ()
    [text] = list_sentences(snapshot)
    assert text.startswith(sentence)
    assert text.endswith("The snapshot leaves it out; correct the object or read it again.")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "object 0: entry 0 of the input is None, not an object."),
        ({"kind": "Node", "apiVersion": "v1"}, "Node: metadata.name is missing."),
        ({"metadata": {"name": "x"}}, "object x: kind is missing."),
        ({"kind": "Node", "metadata": []}, "Node: metadata.name is missing."),
    ],
)
def test_a_value_that_is_not_an_object_is_named(value: Any, sentence: str) -> None:
    [text] = list_sentences(read_snapshot([value]))
    assert text.startswith(sentence)


def test_a_corrected_object_is_no_longer_rejected() -> None:
    broken = a_node("n1", cpu="lots")
    snapshot = read_snapshot([broken])
    assert not snapshot.nodes
    corrected = change_snapshot(snapshot, [a_node("n1")])
    assert list(corrected.nodes) == ["n1"]
    assert not corrected.rejected


def test_an_object_that_becomes_malformed_leaves_the_snapshot() -> None:
    snapshot = read_snapshot([a_node("n1"), a_pod("a", node="n1", cpu="1")])
    changed = change_snapshot(snapshot, [a_pod("a", node="n1", cpu="lots")])
    assert changed.nodes["n1"].requested == {}
    assert len(changed.rejected) == 1


def test_too_many_objects_are_refused_with_the_next_step() -> None:
    assert len(read_snapshot([a_node("a"), a_node("b")], limit=2).nodes) == 2
    with pytest.raises(kinds.SnapshotError, match=r"more than 2 objects\. Read fewer"):
        read_snapshot([a_node("a"), a_node("b"), a_node("c")], limit=2)


def test_lists_nested_too_deep_are_refused() -> None:
    value: dict[str, Any] = {"kind": "List", "items": []}
    for _ in range(20):
        value = {"kind": "List", "items": [value]}
    with pytest.raises(kinds.SnapshotError, match="nested"):
        read_snapshot([value])


def test_a_change_moves_a_pod_and_leaves_the_first_snapshot_as_it_was() -> None:
    before = read_snapshot([a_node("n1"), a_node("n2"), a_node("n3"), a_pod("a", node="n1", cpu="1")])
    after = change_snapshot(before, [a_pod("a", node="n2", cpu="2")])
    assert before.nodes["n1"].requested == {"cpu": 1000}
    assert after.nodes["n1"].requested == {}
    assert after.nodes["n2"].requested == {"cpu": 2000}
    assert after.nodes["n3"] is before.nodes["n3"]


def test_a_change_removes_pods_and_nodes() -> None:
    before = read_snapshot([a_node("n1"), a_node("n2"), a_pod("a", node="n1", cpu="1")])
    after = change_snapshot(before, removed=[(kinds.POD, "default", "a"), (kinds.NODE, "", "n2")])
    assert list(after.nodes) == ["n1"]
    assert after.nodes["n1"].requested == {}


def test_a_pod_that_ends_leaves_its_node() -> None:
    before = read_snapshot([a_node("n1"), a_pod("a", node="n1", cpu="1")])
    after = change_snapshot(before, [a_pod("a", node="n1", cpu="1") | {"status": {"phase": "Succeeded"}}])
    assert after.nodes["n1"].requested == {}


def test_pods_read_before_their_node_count_when_it_comes() -> None:
    before = read_snapshot([a_pod("a", node="n1", cpu="1")])
    assert change_snapshot(before, [a_node("n1")]).nodes["n1"].requested == {"cpu": 1000}


def test_a_changed_node_keeps_its_pods() -> None:
    before = read_snapshot([a_node("n1"), a_pod("a", node="n1", cpu="1")])
    after = change_snapshot(before, [a_node("n1", cpu="1")])
    assert after.nodes["n1"].node.allocatable["cpu"] == 1000
    assert after.nodes["n1"].requested == {"cpu": 1000}


def test_unread_kinds_are_known_after_changes_too() -> None:
    snapshot = change_snapshot(read_snapshot([], unread=[kinds.VOLUME]), [a_node("n1")])
    assert snapshot.find_missing_kinds(kinds.VOLUME, kinds.VOLUME_CLAIM) == {kinds.VOLUME}


def test_a_manifest_without_a_namespace_is_in_the_default_one() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    pod = a_pod("a")
    del pod["metadata"]["namespace"]
    snapshot = read_snapshot([claim, pod])
    assert snapshot.find_volume_claim("default", "data")
    assert ("default", "a") in snapshot.pods


NODES = st.sampled_from(["n1", "n2", "n3"])
PODS = st.builds(
    lambda name, node, cpu, nominated: with_nomination(a_pod(name, node=node, cpu=cpu), nominated),
    st.sampled_from("abcd"),
    NODES | st.just(""),
    st.sampled_from(["1", "2", "lots"]),
    NODES | st.just(""),
)
KEYS = st.tuples(st.just(kinds.POD), st.just("default"), st.sampled_from("abcd")) | st.tuples(
    st.just(kinds.NODE), st.just(""), NODES
)


def with_nomination(pod: dict[str, Any], node: str) -> dict[str, Any]:
    pod["status"]["nominatedNodeName"] = node
    return pod


def describe(snapshot: Snapshot) -> Any:
    nodes = {name: (sorted(pod.name for pod in info.pods), info.requested) for name, info in snapshot.nodes.items()}
    nominated = {node: sorted(pod.name for pod in pods) for node, pods in snapshot.nominated.items()}
    return nodes, nominated, sorted(snapshot.pods), sorted(snapshot.rejected)


@given(st.lists(st.tuples(st.lists(PODS | NODES.map(a_node), max_size=3), st.lists(KEYS, max_size=2)), max_size=6))
def test_changes_lead_to_the_snapshot_of_the_remaining_objects(changes: list[tuple[list[Any], list[Any]]]) -> None:
    snapshot = read_snapshot([])
    remaining: dict[tuple[str, str, str], Any] = {}
    for objects, removed in changes:
        snapshot = change_snapshot(snapshot, objects, removed)
        for key in removed:
            remaining.pop(key, None)
        for value in objects:
            metadata = value["metadata"]
            remaining[value["kind"], metadata.get("namespace", ""), metadata["name"]] = value
    assert describe(snapshot) == describe(read_snapshot(remaining.values()))

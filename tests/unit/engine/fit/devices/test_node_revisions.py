"""A verdict refers to a state by node and revision, so no revision of a node ever means two states."""

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from tests.support.builders.nodes_to_judge import a_cluster, a_device, a_node, a_pod, a_running_pod, decide_on

HOUR = 3_600_000_000
NOW = 500_000 * HOUR


def get_revision(columns: ClusterColumns, name: str = "node-a") -> int:
    (revision,) = columns.revisions.get_revisions(columns.look_up_ids([name])).tolist()
    return int(revision)


def write(columns: ClusterColumns, now: int = NOW) -> list[str]:
    """Write the nodes whose states are due, and return their names."""
    due = columns.revisions.list_due(now - HOUR)
    columns.revisions.record_written(due, now)
    return [entry.fragment.name for entry in columns.get_entries(due.tolist())]


def test_every_kind_of_change_of_a_node_is_a_new_revision_and_nothing_else_is() -> None:
    columns = a_cluster()
    seen = [get_revision(columns)]

    def expect_change(does_change: bool) -> None:
        assert write(columns) == (["node-a"] if does_change else [])
        seen.append(get_revision(columns))

    expect_change(True)
    columns.apply_node(a_node())
    expect_change(False)
    columns.apply_pod(a_running_pod("GPU-0,NVIDIA,3000,30:;"))
    expect_change(True)
    columns.apply_pod(a_running_pod("GPU-0,NVIDIA,3000,30:;"))
    expect_change(False)
    columns.apply_node(a_node(device_cordon="GPU-0"))
    expect_change(True)
    columns.apply_node(a_node(device_cordon="GPU-0, GPU-9"))
    expect_change(False)
    columns.apply_node(a_node(devices=[a_device(health=False)], device_cordon="GPU-0"))
    expect_change(True)
    columns.apply_quota({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {}}})
    expect_change(False)
    columns.delete_pod("uid-running")
    expect_change(True)
    assert seen == sorted(seen)
    assert len(set(seen)) == 5


def test_changes_before_the_state_is_written_are_one_revision() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,3000,30:;")])
    assert get_revision(columns) == 1
    write(columns)
    columns.delete_pod("uid-running")
    columns.apply_node(a_node(device_cordon="GPU-0"))
    assert get_revision(columns) == 2


def test_a_node_that_registers_again_continues_above_all_its_revisions() -> None:
    columns = a_cluster(a_node(), a_node("node-b"))
    for pod in ("uid-1", "uid-2", "uid-3"):
        write(columns)
        columns.apply_pod(a_running_pod("GPU-0,NVIDIA,100,0:;", uid=pod))
    last = get_revision(columns)
    columns.delete_node("node-a")
    assert get_revision(columns) == -1
    columns.delete_node("node-b")
    columns.apply_node(a_node("node-b"))
    columns.apply_node(a_node())
    assert get_revision(columns) > last
    assert sorted(write(columns)) == ["node-a", "node-b"]


def test_a_node_that_is_gone_after_its_state_was_written_has_one_more_revision() -> None:
    columns = a_cluster(a_node(), a_node("never-written"))
    columns.revisions.record_written(columns.look_up_ids(["node-a"]), NOW)
    for name in ("node-a", "never-written"):
        columns.delete_node(name)
    assert columns.revisions.unregistered == {"node-a": 2}
    assert write(columns) == []


def test_a_state_is_due_again_when_it_was_written_too_long_ago() -> None:
    columns = a_cluster(a_node(), a_node("node-b"))
    columns.revisions.record_written(columns.look_up_ids(["node-a"]), NOW - 2 * HOUR)
    columns.revisions.record_written(columns.look_up_ids(["node-b"]), NOW)
    before = get_revision(columns)
    assert write(columns) == ["node-a"]
    assert get_revision(columns) == before


def test_the_oldest_states_come_first() -> None:
    columns = a_cluster(*(a_node(name) for name in ("young", "old", "oldest", "never")))
    for age, name in enumerate(("young", "old", "oldest")):
        columns.revisions.record_written(columns.look_up_ids([name]), NOW - age * HOUR)
    oldest = columns.revisions.list_oldest(2)
    assert [entry.fragment.name for entry in columns.get_entries(oldest.tolist())] == ["oldest", "old"]


def test_a_decision_has_the_revision_of_every_offered_node() -> None:
    columns = a_cluster(a_node(), a_node("node-b"))
    write(columns)
    columns.apply_pod(a_running_pod("GPU-0,NVIDIA,100,0:;", "node-b"))
    decision = decide_on(columns, a_pod(), "node-b", "unheard-of", "node-a")
    assert decision.revision.tolist() == [2, -1, 1]
    assert decision.revision.dtype == np.int64

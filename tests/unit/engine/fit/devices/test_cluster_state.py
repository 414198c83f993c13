import random
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_columns import TOTAL, USED
from tests.support.builders.nodes_to_judge import (
    a_cluster,
    a_device,
    a_node,
    a_pod,
    a_running_pod,
    ask_for,
    decide_on,
    get_reason,
)

NOON = datetime(2026, 11, 21, 12, 0, 0)  # noqa: DTZ001 - handshakes are local times without a zone


def list_used(columns: ClusterColumns, node: str) -> list[tuple[int, ...]]:
    """List (slots, cores, memory) used of each device of a node."""
    entry = columns.get_entry(node)
    assert entry
    return [
        tuple(int(columns.devices[name][row]) for name in USED) for row in range(entry.start, entry.start + entry.size)
    ]


def test_a_pod_counts_from_its_annotation_until_it_ends() -> None:
    columns = a_cluster()
    pod = a_running_pod("GPU-0,NVIDIA,3000,30:;GPU-0,NVIDIA,1000,0:;")
    columns.apply_pod(pod)
    assert list_used(columns, "node-a") == [(2, 30, 4000)]
    columns.apply_pod({**pod, "status": {"phase": "Succeeded"}})
    assert list_used(columns, "node-a") == [(0, 0, 0)]


def test_a_pod_reported_twice_counts_once() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,3000,30:;")] * 3)
    assert list_used(columns, "node-a") == [(1, 30, 3000)]


def test_a_pod_that_came_before_its_node_counts_when_the_node_comes() -> None:
    columns = ClusterColumns()
    columns.apply_pod(a_running_pod("GPU-0,NVIDIA,3000,30:;"))
    columns.apply_node(a_node())
    assert list_used(columns, "node-a") == [(1, 30, 3000)]


def test_a_node_that_registers_other_devices_keeps_what_its_pods_hold() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,3000,30:;")])
    columns.apply_node(a_node(devices=[a_device("GPU-1"), a_device("GPU-0")]))
    assert list_used(columns, "node-a") == [(0, 0, 0), (1, 30, 3000)]


def test_an_unreadable_pod_annotation_holds_nothing() -> None:
    columns = a_cluster(pods=[a_running_pod("GPU-0,NVIDIA,lots,30:;")])
    assert list_used(columns, "node-a") == [(0, 0, 0)]


def test_init_containers_hold_the_biggest_share_until_they_have_all_succeeded() -> None:
    pod = a_running_pod(
        "GPU-0,NVIDIA,9000,10:;GPU-0,NVIDIA,1000,50:;GPU-0,NVIDIA,2000,20:;", init=[ask_for(), ask_for()]
    )
    columns = a_cluster(pods=[pod])
    assert list_used(columns, "node-a") == [(1, 50, 9000)]
    done = {"state": {"terminated": {"exitCode": 0}}}
    pod["status"] = {"phase": "Running", "initContainerStatuses": [done, {"state": {"running": {}}}]}
    columns.apply_pod(pod)
    assert list_used(columns, "node-a") == [(1, 50, 9000)]
    columns.apply_pod({**pod, "status": {"phase": "Running", "initContainerStatuses": [done, done]}})
    assert list_used(columns, "node-a") == [(1, 20, 2000)]


def test_a_malformed_annotation_unregisters_only_its_node_and_says_where() -> None:
    columns = a_cluster(a_node("node-a", '[{"id":"GPU-0","devmem":"lots"}]'), a_node("node-b"))
    assert columns.node_names == ("node-b",)
    assert columns.get_cause("node-a") == (
        "annotation hami.io/node-nvidia-register, device 0, field devmem: is a string, write a whole number"
    )
    assert columns.get_cause("node-b") is None


def test_a_registered_node_survives_a_malformed_annotation_and_says_so() -> None:
    columns = a_cluster()
    columns.apply_node(a_node(devices="{"))
    assert columns.node_names == ("node-a",)
    assert columns.get_cause("node-a") is not None
    columns.apply_node(a_node())
    assert columns.get_cause("node-a") is None


def test_a_node_without_annotation_is_unregistered_without_a_cause() -> None:
    columns = a_cluster({"metadata": {"name": "cpu-node"}})
    assert columns.get_cause("cpu-node") is None
    assert columns.get_fragment("cpu-node") is None


def test_the_form_of_old_device_plugins_is_read_and_marked() -> None:
    columns = a_cluster(a_node(devices="GPU-0,10,24576,100,NVIDIA-Tesla T4,0,true:"))
    registration = columns.get_registration("node-a")
    assert registration is not None
    assert registration.form == "colon"


def test_a_node_that_leaves_the_handshake_open_with_no_gpu_allocatable_is_given_up() -> None:
    columns = ClusterColumns()
    node = a_node()
    node["status"] = {"allocatable": {}}
    columns.apply_node(node, NOON)
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Requesting_2026-11-21 11:59:01"
    columns.apply_node(node, NOON)
    assert list(columns.node_names) == ["node-a"]
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Requesting_2026-11-21 11:59:00"
    columns.apply_node(node, NOON)
    assert not columns.node_names
    assert "handshake" in str(columns.get_cause("node-a"))


def test_a_fragment_is_encoded_once_and_remains_with_old_decisions() -> None:
    columns = a_cluster(a_node(devices=[a_device("GPU-0"), a_device("GPU-1")]))
    fragment = columns.get_fragment("node-a")
    assert fragment is not None
    assert (fragment.name, fragment.uuids_json) == ("node-a", b'["GPU-0","GPU-1"]')
    columns.apply_node(a_node(devices=[a_device("GPU-0"), a_device("GPU-1")]))
    assert columns.get_fragment("node-a") is fragment


def test_a_deleted_node_is_offered_as_unregistered() -> None:
    columns = a_cluster()
    columns.delete_node("node-a")
    assert get_reason(decide_on(columns, a_pod(), "node-a")) == "node unregistered"


@pytest.mark.parametrize("seed", range(20))
def test_increments_in_any_order_end_where_a_fresh_start_does(seed: int) -> None:
    rnd = random.Random(seed)
    names = [f"node-{i}" for i in range(4)]
    columns = ClusterColumns()
    nodes: dict[str, Any] = {}
    pods: dict[str, Any] = {}
    for step in range(150):
        name, uid = rnd.choice(names), f"uid-{rnd.randrange(12)}"
        match rnd.randrange(6):
            case 0:
                gpus = [a_device(f"{name}-{i}", devmem=rnd.choice([1000, 2000])) for i in range(rnd.randrange(1, 5))]
                nodes[name] = a_node(name, gpus)
                columns.apply_node(nodes[name])
            case 1:
                nodes.pop(name, None)
                columns.delete_node(name)
            case 2:
                pods.pop(uid, None)
                columns.delete_pod(uid)
            case _:
                pods[uid] = a_running_pod(f"{name}-{rnd.randrange(5)},NVIDIA,{step},{step % 7}:;", name, uid)
                columns.apply_pod(pods[uid])
    fresh = a_cluster(*nodes.values(), pods=list(pods.values())) if nodes else ClusterColumns()
    assert sorted(columns.node_names) == sorted(fresh.node_names)
    for name in fresh.node_names:
        assert list_used(columns, name) == list_used(fresh, name)
        ours, theirs = columns.get_entry(name), fresh.get_entry(name)
        assert ours
        assert theirs
        sums = [[int(c.nodes[col][e.id]) for col in (*USED, *TOTAL)] for c, e in ((columns, ours), (fresh, theirs))]
        assert sums[0] == sums[1]
        assert np.sum(list_used(columns, name), axis=0).tolist() == sums[0][:3]

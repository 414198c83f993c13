"""Added nodes: empty, open and healthy copies that are gone after the question."""

from typing import Any

import orjson
import pytest

from engine.capacity.added_nodes import Addition, AdditionError, adding_nodes, parse_addition, parse_additions
from tests.support.builders.capacity import a_holder
from tests.support.builders.cluster import a_node, a_taint
from tests.support.builders.simulations import a_device, a_gpu_node, build_described

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "addition"),
    [
        ("like:n1=3", Addition("n1", 3)),
        ("n1=3", Addition("n1", 3)),
        ("like:n1", Addition("n1", 1)),
        ("like:gpu-1.example=1000", Addition("gpu-1.example", 1000)),
    ],
)
def test_an_addition_is_a_node_and_a_count(text: str, addition: Addition) -> None:
    assert parse_addition(text) == addition


@pytest.mark.parametrize("text", ["", "like:", "n1=0", "n1=1001", "n1=-1", "n1=x", "N1=1", "like:n1=1=2"])
def test_other_texts_are_no_addition(text: str) -> None:
    with pytest.raises(AdditionError, match="write like:NODE=COUNT with a count of 1 to 1000"):
        parse_addition(text)


def test_several_additions_are_divided_by_commas() -> None:
    assert parse_additions("n1=2,like:n2") == [Addition("n1", 2), Addition("n2", 1)]
    assert parse_additions("") == []


def test_added_nodes_are_empty_open_and_healthy() -> None:
    cordon = a_taint("node.kubernetes.io/unschedulable")
    node = a_gpu_node("n1", 1, labels={"zone": "a"}, taints=[a_taint("gpu"), cordon])
    node["spec"]["unschedulable"] = True
    node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = orjson.dumps(
        [a_device() | {"health": False}]
    ).decode()
    cluster = build_described(node, a_holder("h", "n1", {0: (1000, 0)}))
    with adding_nodes(cluster, [Addition("n1", 2)]) as (extended, names):
        assert names == ["n1-added-1", "n1-added-2"]
        assert set(extended.snapshot.nodes) == {"n1", *names}
        info = extended.snapshot.nodes["n1-added-2"]
        assert (info.pods, info.node.is_unschedulable) == ((), False)
        assert [taint.key for taint in info.node.taints] == ["gpu"]
        assert info.node.labels == {"zone": "a", "kubernetes.io/hostname": "n1-added-2"}
        entry = extended.columns.get_entry("n1-added-2")
        assert entry is not None
        assert [device.is_healthy for device in entry.devices.registration.devices] == [True]
        assert extended.unfiltered == cluster.unfiltered
    assert cluster.columns.get_entry("n1-added-1") is None
    assert set(cluster.snapshot.nodes) == {"n1"}


def test_names_of_nodes_of_the_cluster_are_passed_over() -> None:
    cluster = build_described(a_node("n1"), a_node("n1-added-1"), a_node("n1-added-3"))
    with adding_nodes(cluster, [Addition("n1", 2), Addition("n1", 1)]) as (_, names):
        assert names == ["n1-added-2", "n1-added-4", "n1-added-5"]


def test_a_node_that_the_cluster_lacks_has_no_copies() -> None:
    cluster = build_described(a_gpu_node("n1"))
    with (
        pytest.raises(AdditionError, match="the cluster has no node n2"),
        adding_nodes(cluster, [Addition("n1", 1), Addition("n2", 1)]),
    ):
        pass
    assert cluster.columns.get_entry("n1-added-1") is None

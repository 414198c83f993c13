"""Slices of a pool that count on a node, and pools from which devices are taken.

Expected values: sections 6 of Kubernetes' rules as recorded in tests/conformance, restated one by one.
"""

from typing import Any

import pytest

from engine.claims.gates import DEFAULT_GATES, Gates
from engine.claims.inventory import read_inventory
from engine.claims.pools import collect_pools
from engine.claims.slices import Pool, PoolState
from engine.snapshot.reading import read_snapshot
from tests.support.builders.claims import a_claim, a_class, a_device, a_slice, judge_claims
from tests.support.builders.cluster import Object, a_node


def collect(*slices: Object, node: Object | None = None, gates: Gates = DEFAULT_GATES) -> tuple[Pool, ...]:
    snapshot = read_snapshot([node or a_node(), *slices])
    inventory = read_inventory(snapshot, gates)
    assert not inventory.rejected
    return collect_pools(inventory, snapshot.nodes["n1"].node)


def a_part(name: str, *devices: str, generation: int = 1, count: int = 1, pool: str = "p", **spec: Any) -> Object:
    part = a_slice(*map(a_device, devices), name=name, pool=pool, **spec)
    part["spec"]["pool"] = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return part


def list_slices(pool: Pool) -> list[str]:
    return [slice_.name for slice_ in pool.slices]


def test_slices_of_a_pool_stand_in_the_order_of_their_names() -> None:
    (pool,) = collect(a_part("b", "1", count=2), a_part("a", "2", count=2))
    assert pool.is_usable
    assert list_slices(pool) == ["a", "b"]


def test_only_the_highest_generation_counts() -> None:
    (pool,) = collect(a_part("old", "1", generation=1), a_part("new", "1", generation=2))
    assert list_slices(pool) == ["new"]


def test_a_pool_with_too_few_slices_is_incomplete() -> None:
    (pool,) = collect(a_part("a", "1", count=3), a_part("b", "2", count=3))
    assert (pool.state, pool.seen, pool.expected) == (PoolState.INCOMPLETE, 2, 3)
    assert pool.slices == ()


def test_slices_of_other_nodes_complete_a_pool() -> None:
    (pool,) = collect(a_part("a", "1", count=2), a_part("b", "2", count=2, node="n2"))
    assert pool.is_usable
    assert list_slices(pool) == ["a"]
    assert [slice_.name for slice_ in pool.other_slices] == ["b"]


def test_a_newer_generation_elsewhere_makes_a_pool_outdated() -> None:
    (pool,) = collect(a_part("a", "1", count=2), a_part("b", "2", generation=2, node="n2"))
    assert pool.state is PoolState.OUTDATED


IN_ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("spec", "is_reached"),
    [
        ({"nodeName": "n2"}, False),
        ({"nodeName": None, "allNodes": True}, True),
        ({"nodeName": None, "nodeSelector": {"nodeSelectorTerms": [IN_ZONE_A]}}, True),
        ({"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}}, False),
        ({"nodeName": None}, False),
    ],
)
def test_a_slice_concerns_the_nodes_that_it_selects(spec: dict[str, Any], is_reached: bool) -> None:
    pools = collect(a_part("a", "1", **spec), node=a_node(labels={"zone": "a"}))
    assert bool(pools) == is_reached


def test_a_slice_with_a_selection_of_each_device_concerns_a_node_that_one_of_them_selects() -> None:
    here, there = a_device("here", nodeName="n1"), a_device("there", nodeName="n2")
    fabric = a_slice(here, there, pool="fabric", nodeName=None, perDeviceNodeSelection=True)
    (pool,) = collect(fabric)
    assert pool.is_usable
    judged = judge_claims(a_node(), a_class(), a_claim(), fabric)
    assert judged.list_devices() == ["here"]


@pytest.mark.parametrize(
    ("slices", "cause"),
    [
        ([a_part("a", "1", "1")], "duplicate device name 1"),
        ([a_part("a", "1", count=2), a_part("b", "1", count=2)], "duplicate device name 1"),
    ],
)
def test_a_pool_with_one_name_twice_is_invalid(slices: list[Object], cause: str) -> None:
    (pool,) = collect(*slices)
    assert (pool.state, pool.cause) == (PoolState.INVALID, cause)


def build_consumer(name: str, counter_set: str, counter: str) -> Object:
    return a_device(name, consumesCounters=[{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}])


def with_counters(name: str, *sets: str) -> Object:
    part = a_part(name, count=2)
    part["spec"]["sharedCounters"] = [{"name": name, "counters": {"memory": {"value": "4"}}} for name in sets]
    return part


@pytest.mark.parametrize(
    ("sets", "device", "cause"),
    [
        (["a", "a"], build_consumer("1", "a", "memory"), "duplicate counter set name a"),
        (["a"], build_consumer("1", "b", "memory"), "counter set b not found"),
        (["a"], build_consumer("1", "a", "slices"), "counter slices not found in counter set a"),
    ],
)
def test_a_pool_with_contradicting_counters_is_invalid(sets: list[str], device: Object, cause: str) -> None:
    devices = a_part("devices", count=2)
    devices["spec"]["devices"] = [device]
    (pool,) = collect(with_counters("counters", *sets), devices)
    assert (pool.state, pool.cause) == (PoolState.INVALID, cause)


def test_pools_stand_by_driver_and_name_and_those_with_binding_conditions_behind_them() -> None:
    waiting = a_slice(a_device("1", bindingConditions=["ready"]), pool="a")
    pools = collect(
        waiting, a_part("c", "1", pool="c"), a_part("b", "1", pool="b"), a_part("x", "1", pool="x", driver="a.com")
    )
    assert [pool.title for pool in pools] == ["a.com/x", "gpu.nvidia.com/b", "gpu.nvidia.com/c", "gpu.nvidia.com/a"]


def test_an_invalid_pool_is_the_reason_only_where_nothing_else_fits() -> None:
    invalid = a_part("bad", "1", "1", pool="bad")
    fitting = judge_claims(a_node(), a_class(), a_claim(), invalid, a_part("good", "2", pool="good"))
    assert fitting.get_reasons() == ()
    assert judge_claims(a_node(), a_class(), a_claim(), invalid).get_reasons() == (
        "invalid resource pools were encountered",
    )

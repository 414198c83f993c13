"""Sums of devices by model and namespace, and their agreement with the numbers of each node."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from engine.capacity.fleet import add_devices
from engine.cases.node_answers import CaseNodes
from engine.simulation.cluster import SimulationCluster
from engine.snapshot.case_objects import collect_objects
from page.views.fleet import add_nodes, list_excluded, list_useless
from schemas.answers.placements import DeviceOccupancy, Holder
from tests.support.builders.capacity import clusters

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_holder_of(namespace: str, name: str, memory: int, cores: int) -> Holder:
    return Holder(
        namespace=namespace, name=name, container="main", init=False, memory_mib=memory, cores_percent=cores, slots=1,
        started_at="", attempt_id="",
    )  # fmt: skip


def a_device(uuid: str, model: str = "A40", *holders: Holder, **fields: Any) -> DeviceOccupancy:
    values: dict[str, Any] = {
        "memory_total_mib": 100, "memory_held_mib": sum(holder.memory_mib or 0 for holder in holders),
        "cores_total_percent": 100, "cores_held_percent": sum(holder.cores_percent or 0 for holder in holders),
        "slots_total": 10, "slots_held": len(holders), "healthy": True, "cordoned": False,
    }  # fmt: skip
    return DeviceOccupancy(uuid=uuid, model=model, held_by=list(holders), **{**values, **fields})


def test_free_memory_is_divided_into_pieces_and_what_no_pod_gets() -> None:
    devices = [
        a_device("free"),
        a_device("part", "A40", a_holder_of("a", "p1", 30, 50)),
        a_device("no-cores", "A40", a_holder_of("a", "p2", 30, 100)),
        a_device("no-slot", "A40", a_holder_of("b", "p3", 60, 0), slots_total=1),
        a_device("broken", "A40", healthy=False),
        a_device("other", "T4", cordoned=True),
    ]
    sums = add_devices(devices, is_closed=False)
    a40, t4 = sums.models
    assert (a40.devices, a40.free_devices, a40.memory_total_mib) == (5, 1, 500)
    assert (a40.memory_free_mib, a40.memory_in_pieces_mib, a40.memory_stranded_mib) == (280, 180, 110)
    assert (t4.devices, t4.free_devices, t4.memory_free_mib) == (1, 0, 0)
    assert [device.uuid for device in sums.excluded] == ["broken", "other"]
    closed = add_devices(devices, is_closed=True)
    assert [(model.free_devices, model.memory_free_mib) for model in closed.models] == [(0, 0), (0, 0)]


def test_a_device_counts_for_each_pod_that_holds_it_and_once_for_its_containers() -> None:
    devices = [
        a_device("d1", "A40", a_holder_of("a", "p1", 10, 5), a_holder_of("a", "p1", 10, 5)),
        a_device("d2", "A40", a_holder_of("a", "p1", 10, 5), a_holder_of("b", "p2", 20, 0)),
    ]
    held = add_devices(devices, is_closed=False).held
    assert [(entry.namespace, entry.pods, entry.devices, entry.memory_mib, entry.cores_percent) for entry in held] == [
        ("a", 1, 2, 30, 15), ("b", 1, 1, 20, 0),
    ]  # fmt: skip


@settings(max_examples=25)
@given(clusters())
def test_sums_of_models_and_namespaces_are_those_of_the_nodes(cluster: SimulationCluster) -> None:
    nodes = CaseNodes(collect_objects(cluster.objects), NOON)
    listed = nodes.list_nodes().model_dump(mode="json")["items"]
    models, namespaces = add_nodes(listed, "model"), add_nodes(listed, "namespace")
    for name in ("devices", "free_devices", "memory_free_mib"):
        assert sum(model[name] for model in models) == sum(node[name] for node in listed)
    occupancies = [nodes.build_occupancy(node["node"]) for node in listed]
    devices = [device for occupancy in occupancies if occupancy for device in occupancy.devices]
    assert sum(entry["memory_mib"] for entry in namespaces) == sum(device.memory_held_mib or 0 for device in devices)
    holders = {(device.uuid, holder.name) for device in devices for holder in device.held_by}
    assert sum(entry["devices"] for entry in namespaces) == len(holders)
    # The fit counts the same memory.
    columns = cluster.columns.nodes
    ids = [entry.id for name in cluster.columns.node_names if (entry := cluster.columns.get_entry(name))]
    left = columns["total_memory"][ids].sum() - columns["used_memory"][ids].sum()
    assert sum(max(model["memory_free_mib"], 0) for model in models) >= left


def a_listed_node(name: str, **fields: Any) -> dict[str, Any]:
    values = {"free_devices": 0, "memory_free_mib": 0, "ready": "True", "cordoned": False, "problems": [], "devices": 2}
    return {"node": name, "excluded": [], "models": [], **values, **fields}


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({}, None),
        ({"free_devices": 1, "cordoned": True}, None),
        ({"cordoned": True}, ["cordoned"]),
        ({"ready": "Unknown", "cordoned": True}, ["not ready", "cordoned"]),
        ({"devices": 0}, None),
        ({"devices": 0, "problems": [{"code": "RegistrationMissing"}]}, ["RegistrationMissing"]),
        ({"excluded": [{"uuid": "a"}, {"uuid": "b"}]}, ["all devices are unhealthy or cordoned"]),
    ],
)
def test_a_node_is_useless_for_reasons_other_than_its_pods(fields: Any, reasons: list[str] | None) -> None:
    assert list_useless([a_listed_node("n1", **fields)]) == ([("n1", reasons)] if reasons else [])


def test_an_unknown_amount_makes_the_sum_unknown() -> None:
    nodes = [{"models": [{"model": "A40", "devices": 1, "memory_free_mib": free}]} for free in (10, None)]
    assert add_nodes(nodes, "model") == [{"model": "A40", "nodes": 2, "devices": 2, "memory_free_mib": None}]


def test_nodes_without_devices_are_counted_after_all_models_and_in_their_pool() -> None:
    models = [{"model": "A40", "devices": 8}]
    nodes: list[Any] = [{"models": models, "pool": "gpu"}, *[{"models": [], "pool": "gpu"}] * 2, {"models": []}]
    counts = [(entry["model"], entry["nodes"], entry["devices"]) for entry in add_nodes(nodes, "model")]
    assert counts == [("A40", 1, 8), (None, 3, 0)]
    pools = [(entry["pool"], entry["nodes"], entry["devices"]) for entry in add_nodes(nodes, "pool")]
    assert pools == [("", 1, 0), ("gpu", 3, 8)]


def test_excluded_devices_have_their_node() -> None:
    assert list_excluded([a_listed_node("n1", excluded=[{"uuid": "a"}])]) == [{"node": "n1", "uuid": "a"}]


def test_what_pods_hold_of_a_device_is_rounded_up() -> None:
    part = a_device("a", "A40", a_holder_of("ml", "p", 1, 1), memory_total_mib=1000)
    (fill,) = add_devices([part], is_closed=False).fill
    # 1 of 1,000 MiB is 0.1 percent.
    assert (fill.memory_percent, fill.cores_percent) == (1, 1)

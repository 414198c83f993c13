"""Nodes of a case: devices that HAMi registers with their holders, and whole devices of a device plugin."""

import json
from datetime import UTC, datetime

from engine.cases.node_answers import CaseNodes
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders import divisible_devices

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEVICES = [
    {"id": f"GPU-{index}", "index": index, "count": 10, "devmem": 40000, "devcore": 100, "type": "NVIDIA-A100",
     "mode": "hami-core", "health": index != 2}
    for index in range(3)
]  # fmt: skip


def a_hami_node(name: str, **spec: object) -> Json:
    annotations = {"hami.io/node-nvidia-register": json.dumps(DEVICES),
                   "hami.io/node-handshake": "Reported 2026-01-01 11:59:50"}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}  # fmt: skip


def a_plugin_node(name: str, devices: int) -> Json:
    labels = {"nvidia.com/gpu.product": "H100"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": str(devices)}}}  # fmt: skip


def a_holder(name: str, node: str, held: str = "", devices: int = 0, phase: str = "Running") -> Json:
    annotations = {"hami.io/vgpu-devices-allocated": held, "hami.io/vgpu-node": node} if held else {}
    limits = {"nvidia.com/gpu": str(devices)} if devices else {}
    metadata = {"name": name, "namespace": "ml", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]},
            "status": {"phase": phase}}  # fmt: skip


def read(*objects: Json) -> CaseNodes:
    return CaseNodes(collect_objects(objects), NOW)


def test_devices_have_their_holders_and_what_is_free() -> None:
    pod = a_holder("train", "n0", "GPU-0,NVIDIA,10000,30:;")
    nodes = read(a_hami_node("n0"), pod)
    occupancy = nodes.build_occupancy("n0")
    assert occupancy
    first = occupancy.devices[0]
    assert (first.uuid, first.memory_held_mib, first.cores_held_percent, first.slots_held) == ("GPU-0", 10000, 30, 1)
    assert [holder.name for holder in first.held_by] == ["train"]
    assert [(other.name, other.devices) for other in occupancy.pods] == [("train", ["GPU-0"])]
    # Of three devices one is held in part, and one is unhealthy.
    assert occupancy.free_devices == 1
    (listed,) = nodes.list_nodes().items
    assert (listed.devices, listed.free_devices, listed.unhealthy_devices, listed.ready) == (3, 1, 1, "True")
    assert (listed.memory_free_mib, listed.largest_free_mib) == (70000, 40000)
    assert listed.fragmentation == round(30000 / 70000, 4)


def test_a_cordoned_node_has_nothing_free() -> None:
    (listed,) = read(a_hami_node("n0", unschedulable=True)).list_nodes().items
    assert (listed.cordoned, listed.free_devices, listed.memory_free_mib) == (True, 0, 0)


def test_whole_devices_of_a_plugin_are_counted_by_requests() -> None:
    pods = [a_holder("a", "n1", devices=3), a_holder("b", "n1", devices=4, phase="Succeeded")]
    nodes = read(a_plugin_node("n1", 8), *pods)
    (listed,) = nodes.list_nodes().items
    assert (listed.devices, listed.free_devices, listed.pods, listed.memory_free_mib) == (8, 5, 1, None)
    occupancy = nodes.build_occupancy("n1")
    assert occupancy
    (row,) = occupancy.devices
    assert (row.uuid, row.model, row.slots_held, row.slots_total) == ("nvidia.com/gpu", "H100", 3, 8)


def test_a_node_that_does_not_exist_has_no_answer() -> None:
    assert read(a_plugin_node("n1", 8)).build_occupancy("n2") is None
    assert read(a_plugin_node("n1", 8)).build_state("n2") is None


def test_a_node_that_lost_its_registration_has_no_devices_where_others_register() -> None:
    lost = a_plugin_node("n1", 80)
    listed = {node.node: node for node in read(a_hami_node("n0"), lost).list_nodes().items}
    assert (listed["n1"].devices, [problem.code for problem in listed["n1"].problems]) == (0, ["RegistrationMissing"])
    # Without HAMi no node registers anything, and that is no problem.
    (alone,) = read(lost).list_nodes().items
    assert (alone.devices, alone.problems) == (80, [])


def test_koordinators_devices_have_their_holders_by_minor_number() -> None:
    nodes = read(
        divisible_devices.a_node("n0", divisible_devices.OF_KOORDINATOR), divisible_devices.a_device("n0", sick=1),
        divisible_devices.a_koordinator_holder("train", "n0", 0, 50),
    )  # fmt: skip
    occupancy = nodes.build_occupancy("n0")
    assert occupancy
    rows = [
        (row.uuid, row.model, row.memory_total_mib, row.memory_held_mib, row.cores_held_percent, row.healthy)
        for row in occupancy.devices
    ]
    # Half of 80 GiB; the pod's annotation has it in percent.
    assert rows == [
        ("n0/gpu-0", "A100-SXM4-80GB", 81920, 40960, 50, True),
        ("n0/gpu-1", "A100-SXM4-80GB", 81920, 0, 0, False),
        ("n0/rdma-0", "rdma", None, None, 0, True),
    ]
    assert [holder.name for holder in occupancy.devices[0].held_by] == ["train"]
    assert [(other.name, other.devices) for other in occupancy.pods] == [("train", ["n0/gpu-0"])]


def test_volcanos_vgpu_devices_have_their_holders() -> None:
    held = "v0-a,NVIDIA,16000,30:;v0-b,NVIDIA,2000,0:;"
    nodes = read(divisible_devices.a_vgpu_node("v0"), divisible_devices.a_volcano_holder("serve", "v0", held))
    occupancy = nodes.build_occupancy("v0")
    assert occupancy
    rows = [(row.uuid, row.memory_held_mib, row.cores_held_percent, row.slots_total) for row in occupancy.devices]
    assert rows == [("v0-a", 16000, 30, 10), ("v0-b", 2000, 0, 10)]
    (listed,) = nodes.list_nodes().items
    assert (listed.devices, listed.free_devices, listed.largest_free_mib) == (2, 0, 30768)
    assert listed.problems == []

"""A recorded cluster written as Kubernetes objects is the recorded cluster again when `simulate` reads it."""

from pathlib import Path

import orjson
from hypothesis import given, settings

from hami.cluster_objects import ClusterObjects, cluster_objects
from scheduler.cluster import manifests
from scheduler.devices.as_of import rebuilt
from scheduler.devices.cluster_state import ClusterColumns
from schemas.events import DeviceKind, NodeStateChanged
from tests.support.builders.node_states import a_node_state
from tests.support.harness.states_in_memory import states_of
from tests.support.stress import examples
from tests.unit.scheduler.devices.test_as_of import clusters, fields_of


def read_again(written: ClusterObjects) -> ClusterColumns:
    text = b"".join(b"---\n" + orjson.dumps(each, option=orjson.OPT_INDENT_2) + b"\n" for each in written.objects)
    manifest = manifests.parse(text, Path("cluster.yaml"))
    columns = ClusterColumns()
    for node in manifest.nodes.values():
        columns.apply_node(node)
    for pod in manifest.pods.values():
        columns.apply_pod(pod)
    return columns


def only_nvidia(state: NodeStateChanged) -> bool:
    return all(kind.vendor in ("", "NVIDIA") for kind in state.kinds)


@settings(max_examples=examples(50), deadline=None)
@given(clusters())
def test_devices_and_what_is_in_use_of_them_come_back(columns: ClusterColumns) -> None:
    states = [state for state in states_of(columns) if only_nvidia(state)]
    written = cluster_objects(states)
    assert written.left_out == []
    assert fields_of(states_of(read_again(written))) == fields_of(states_of(rebuilt(states)))


def test_nodes_without_devices_are_there_and_what_can_not_be_written_is_said() -> None:
    kinds = [DeviceKind(model="910B", vendor="Ascend910B", memory_mib=1, cores_percent=1, slots=1)]
    unknown = [DeviceKind(model="L40S", memory_mib=45912)]
    states = [a_node_state("npu", 2, kinds=kinds), a_node_state("log", 1, kinds=unknown), a_node_state("gpu", 1)]
    written = cluster_objects(states, ["cpu"])
    assert [each["metadata"]["name"] for each in written.objects if each["kind"] == "Node"] == [
        "npu",
        "log",
        "gpu",
        "cpu",
    ]
    assert written.left_out == [
        "npu: 2 devices of other vendors than NVIDIA",
        "log: all devices, because its source does not report how many pods may share them",
    ]
    assert read_again(written).node_names == ("gpu",)

"""Copies of a pod with a part of a KAI device: counted as many as devices have room for, one after the other."""

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capacity.per_node import measure_capacity
from engine.capacity.starts import plan_starts
from engine.simulation.pod_placer import placing_pods
from engine.simulation.verdict import PodOutcome, judge_simulated
from engine.simulation.workloads import PodTemplate
from schemas.json_types import Json
from tests.support.builders.capacity import SETTING
from tests.support.builders.simulations import NOW, build_described

GPU: Final = "nvidia.com/gpu"


def a_node(devices: int, name: str = "n1", memory_mib: int = 40_960) -> Json:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "20", GPU: str(devices)}
    labels = {"nvidia.com/gpu.memory": str(memory_mib)} if memory_mib else {}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def a_pod(name: str = "p", group: str = "", node: str = "n1", devices: int = 0, **annotations: str) -> Json:
    amounts = {GPU: str(devices)} if devices else {}
    metadata: dict[str, Any] = {"name": name, "namespace": "ml", "uid": name}
    metadata["annotations"] = {key.replace("_", "-"): value for key, value in annotations.items()}
    metadata["labels"] = {"runai-gpu-group": group} if group else {}
    containers = [{"name": "c", "resources": {"limits": amounts, "requests": amounts}}]
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": containers}
    placed: dict[str, Any] = {"spec": {**spec, "nodeName": node}, "status": {"phase": "Running"}} if group else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **placed}


def share_device(fraction: str, group: str = "g") -> list[Json]:
    """Build a pod with a fraction of a device, and the pod by which KAI holds that device."""
    reservation = a_pod(f"reservation-{group}", group, devices=1)
    reservation["metadata"]["namespace"] = "kai-resource-reservation"
    return [reservation, a_pod(f"other-{group}", group, gpu_fraction=fraction)]


@pytest.mark.parametrize(
    ("annotations", "objects", "copies"),
    [
        ({"gpu_fraction": "0.5"}, [a_node(2)], 4),
        # A third of a device is asked for thrice, and the rest of each device is lost.
        ({"gpu_fraction": "0.3"}, [a_node(2)], 6),
        # 0.3 of the shared device, and three times 0.3 of the idle one.
        ({"gpu_fraction": "0.3"}, [a_node(2), *share_device("0.7")], 4),
        ({"gpu_fraction": "0.5"}, [a_node(2), *share_device("0.7")], 2),
        # KAI counts 40,900 MiB: two of 20,450, and one of 20,451.
        ({"gpu_memory": "20450"}, [a_node(1)], 2),
        ({"gpu_memory": "20451"}, [a_node(1)], 1),
        # Each copy takes half of two devices.
        ({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "2"}, [a_node(2)], 2),
        ({"gpu_fraction": "0.6", "gpu_fraction_num_devices": "2"}, [a_node(5)], 2),
        # The node takes 20 pods, one of which runs already and one reserves its device.
        ({"gpu_fraction": "0.01"}, [a_node(2), *share_device("0.5")], 18),
        # Without the label nobody knows how many share a device: one on each is certain.
        ({"gpu_memory": "4000"}, [a_node(3, memory_mib=0)], 3),
    ],
)
def test_copies_are_counted_by_what_devices_have_left(
    annotations: dict[str, Any], objects: list[Json], copies: int
) -> None:
    template = PodTemplate("Pod", "p", a_pod(**annotations), 1, {})
    assert measure_capacity(build_described(*objects), template, SETTING).copies == {"n1": copies}


@settings(max_examples=25)
@given(st.integers(1, 4), st.sampled_from(["0.1", "0.25", "0.3", "0.5", "0.9"]), st.integers(1, 3), st.data())
def test_the_count_is_what_placing_one_copy_after_the_other_fills(
    devices: int, fraction: str, of_copy: int, data: st.DataObject
) -> None:
    others = data.draw(st.lists(st.sampled_from(["0.2", "0.5", "0.75"]), max_size=devices))
    shared = [item for number, other in enumerate(others) for item in share_device(other, f"g{number}")]
    cluster = build_described(a_node(devices), *shared)
    template = PodTemplate("Pod", "p", a_pod(gpu_fraction=fraction, gpu_fraction_num_devices=str(of_copy)), 1, {})
    placed = 0
    with placing_pods(cluster) as placer:
        while True:
            pod = template.build_pod(placed, 100)
            verdict = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, NOW)
            if verdict.outcome is not PodOutcome.FITS:
                break
            placer.bind(verdict)
            placed += 1
    # A device that is shared first takes the room of one more pod, that of the pod which reserves it.
    total = measure_capacity(cluster, template, SETTING).total
    assert placed == total or placed < total == 20 - len(shared)


def test_the_next_end_frees_the_part_of_its_device() -> None:
    cluster = build_described(a_node(1), *share_device("0.7"))
    plan = plan_starts(cluster, PodTemplate("Pod", "p", a_pod(gpu_fraction="0.5"), 1, {}), 2, [], SETTING)
    assert (plan.starts, plan.capacity) == (0, 0)
    assert plan.next_end
    assert (plan.next_end.name, plan.next_end.pods) == ("other-g", 2)

"""Clusters with pods that hold devices, for tests of capacity and drains."""

from typing import Any, Final

from hypothesis import strategies as st

from engine.simulation.cluster import SimulationCluster
from engine.simulation.setting import SimulationSetting
from tests.support.builders.cluster import a_pod
from tests.support.builders.simulations import NOW, a_gpu_node, build_described

SETTING: Final = SimulationSetting(NOW)


def a_holder(name: str, node: str, devices: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """Build a pod that holds memory (MiB) and cores (percent) of devices of a node."""
    pod = a_pod(name, node=node)
    held = "".join(f"GPU-{node}-{number},NVIDIA,{memory},{cores}:" for number, (memory, cores) in devices.items())
    pod["metadata"]["annotations"] = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": f"{held};"}
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(len(devices))}}
    return pod


def a_replica(name: str, node: str, devices: dict[int, tuple[int, int]], owner: str = "web") -> dict[str, Any]:
    """Build a holder that a ReplicaSet makes again, with the memory that it asks for and the labels of its pods."""
    pod = a_holder(name, node, devices)
    pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    pod["metadata"]["labels"] = {"app": owner}
    (memory, cores), *_ = devices.values()
    limits = {"nvidia.com/gpu": str(len(devices)), "nvidia.com/gpumem": str(memory), "nvidia.com/gpucores": str(cores)}
    pod["spec"]["containers"][0]["resources"] = {"limits": limits}
    return pod


def a_budget(name: str, app: str | None, allowed: int, *, healthy: int = 3, desired: int = 3) -> dict[str, Any]:
    """Build a disruption budget with its status; app: label of the pods that it selects, None for all."""
    selector = {"matchLabels": {"app": app}} if app else {}
    status = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
              "expectedPods": healthy, "observedGeneration": 2}  # fmt: skip
    metadata = {"namespace": "default", "name": name, "generation": 2}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
            "spec": {"selector": selector}, "status": status}  # fmt: skip


_USES: Final = st.dictionaries(
    st.integers(0, 3), st.tuples(st.sampled_from([1000, 6000, 12000, 20000]), st.sampled_from([0, 30, 60])), max_size=4
)


@st.composite
def clusters(draw: st.DrawFn) -> SimulationCluster:
    """Up to three nodes of up to four devices, with pods that hold some of them."""
    objects = []
    for number in range(draw(st.integers(1, 3))):
        name, devices = f"n{number}", draw(st.integers(1, 4))
        objects.append(a_gpu_node(name, devices))
        for position, use in enumerate(draw(st.lists(_USES, max_size=2))):
            held = {device: amounts for device, amounts in use.items() if device < devices}
            if held:
                objects.append(a_holder(f"{name}-p{position}", name, held))
    return build_described(*objects)

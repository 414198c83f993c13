"""Devices that Koordinator and Volcano give parts of, with the pods that hold some.

The forms are those of Koordinator's ``apis/scheduling/v1alpha1/device_types.go`` and ``apis/extension/device_share.go``
and of Volcano's ``pkg/scheduler/api/devices/nvidia/vgpu``.
"""

import json
from typing import Final

from schemas.json_types import Json

OF_KOORDINATOR: Final = {"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
OF_VOLCANO: Final = {"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "65536", "volcano.sh/vgpu-cores": "200"}


def a_node(name: str, amounts: Json, annotations: Json | None = None) -> Json:
    offered = {"cpu": "32", "memory": "128Gi", "pods": "110", **amounts}
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations or {}}
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def a_device(node: str, sick: int = -1) -> Json:
    """Koordinator's object of a node with two GPUs of 80 GiB and an RDMA device; ``sick``: minor number of a GPU."""
    amounts = {**dict.fromkeys(OF_KOORDINATOR, "100"), "koordinator.sh/gpu-memory": "80Gi"}
    gpus = [
        {"type": "gpu", "minor": minor, "id": f"GPU-{minor}", "health": minor != sick, "resources": amounts}
        for minor in range(2)
    ]
    rdma = {"type": "rdma", "minor": 0, "health": True, "resources": {"koordinator.sh/rdma": "100"}}
    metadata = {
        "name": node, "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"node.koordinator.sh/gpu-model": "A100-SXM4-80GB"},
    }  # fmt: skip
    version = "scheduling.koordinator.sh/v1alpha1"
    return {"apiVersion": version, "kind": "Device", "metadata": metadata, "spec": {"devices": [*gpus, rdma]}}


def a_vgpu_node(name: str) -> Json:
    """A node that registers two devices of 32 GiB with Volcano."""
    devices = (f"{name}-{part},10,32768,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:" for part in "ab")
    return a_node(name, OF_VOLCANO, {"volcano.sh/node-vgpu-register": "".join(devices)})


def a_holder(name: str, node: str, annotations: Json, namespace: str = "ml") -> Json:
    metadata = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}", "annotations": annotations,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    spec = {"nodeName": node, "containers": [{"name": "main"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def a_koordinator_holder(name: str, node: str, minor: int, percent: int, namespace: str = "ml") -> Json:
    """A pod with a part of a GPU, as the scheduler writes it: memory in percent alone."""
    amounts = dict.fromkeys(OF_KOORDINATOR, str(percent))
    allocated = {"gpu": [{"minor": minor, "resources": amounts}]}
    return a_holder(name, node, {"scheduling.koordinator.sh/device-allocated": json.dumps(allocated)}, namespace)


def a_volcano_holder(name: str, node: str, held: str) -> Json:
    return a_holder(name, node, {"volcano.sh/vgpu-node": node, "volcano.sh/vgpu-ids-new": held})

"""Pods and clusters for tests of simulations, as the texts of files."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from engine.fit import device_config, manifests
from engine.hami.releases import LATEST, HamiRelease
from engine.simulation.cluster import SimulationCluster, build_cluster
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.workloads import read_workloads
from tests.support.builders.cluster import a_node, a_pod

NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
Object = dict[str, Any]


def a_device(number: int = 0, model: str = "NVIDIA A10", memory: int = 24576, slots: int = 10) -> Object:
    """Build a device as HAMi's plugin registers it."""
    device = {"id": f"GPU-{number}", "index": number, "count": slots, "devmem": memory, "devcore": 100}
    return device | {"type": model, "mode": "hami-core", "health": True}


def a_gpu_node(name: str = "n1", devices: int = 1, **fields: Any) -> Object:
    """Build a node that registers some devices with HAMi."""
    node = a_node(name, gpu=str(devices * 10), **fields)
    listed = [a_device(number) | {"id": f"GPU-{name}-{number}"} for number in range(devices)]
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": orjson.dumps(listed).decode()}
    return node


def a_gpu_pod(name: str = "p1", **limits: Any) -> Object:
    """Build a pod with limits of NVIDIA's resources as HAMi names them: gpu, gpumem, gpucores, …"""
    pod = a_pod(name)
    amounts = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in (limits or {"gpu": 1}).items()}
    pod["spec"]["containers"] = [{"name": "c", "resources": {"limits": amounts}}]
    del pod["status"]
    return pod


def build_described(*objects: Object, release: HamiRelease = LATEST) -> SimulationCluster:
    """Build the cluster of a file with these objects."""
    text = orjson.dumps({"kind": "List", "items": list(objects)})
    manifest = manifests.parse(text, Path("cluster.json"))
    return build_cluster(manifest, device_config.read_shipped(), release)


def simulate(workload: Object, *objects: Object, count: int | None = None, release: HamiRelease = LATEST) -> Any:
    """Simulate a workload on a cluster of objects."""
    workloads = read_workloads(orjson.dumps(workload), Path("pod.json"))
    return simulate_workloads(build_described(*objects, release=release), workloads, count, SimulationSetting(NOW))


def list_notes(answer: Any) -> dict[str, str]:
    """List the notes of an answer by code."""
    return {note["code"]: note["text"]["en"] for note in answer["notes"]}

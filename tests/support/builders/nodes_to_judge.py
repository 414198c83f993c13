"""Nodes, devices and pods of which a test names only what matters to it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy

A100_PROFILES: list[dict[str, Any]] = [
    {
        "name": "1g.5gb",
        "memoryMB": 4864,
        "core": 14,
        "sliceCount": 1,
        "placements": [{"start": start, "size": 1} for start in range(7)],
    },
    {
        "name": "3g.20gb",
        "memoryMB": 19968,
        "core": 42,
        "sliceCount": 3,
        "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}],
    },
    {"name": "7g.40gb", "memoryMB": 40192, "core": 100, "sliceCount": 7, "placements": [{"start": 0, "size": 8}]},
]


def a_device(uuid: str = "GPU-0", **fields: Any) -> dict[str, Any]:
    """One entry of a register annotation: healthy, 24 GiB, ten slots, whole cores."""
    device = {"id": uuid, "count": 10, "devmem": 24576, "devcore": 100, "type": "NVIDIA A30", "mode": "hami-core"}
    return {**device, "health": True, **fields}


def a_mig_device(uuid: str = "GPU-0", **fields: Any) -> dict[str, Any]:
    return a_device(
        uuid,
        **{"mode": "mig", "devmem": 40960, "count": 7, "type": "NVIDIA A100", "migProfiles": A100_PROFILES, **fields},
    )


def a_node(
    name: str = "node-a", devices: Sequence[Mapping[str, Any]] | str | None = None, **fields: str
) -> dict[str, Any]:
    """A Node; `devices` may be the annotation's text; `fields` are further `hami.io/` annotations, `_` for `-`."""
    text = devices if isinstance(devices, str) else json.dumps([a_device()] if devices is None else list(devices))
    more = {f"hami.io/{key.replace('_', '-')}": value for key, value in fields.items()}
    return {
        "metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": text, **more}},
        "status": {"allocatable": {"nvidia.com/gpu": "10"}},
    }


def ask_for(count: int = 1, **amounts: Any) -> dict[str, Any]:
    """Build the resources of a container that asks for devices: `ask_for(2, gpumem=3000, gpucores=30)`."""
    limits = {"nvidia.com/gpu": count, **{f"nvidia.com/{key.replace('_', '-')}": v for key, v in amounts.items()}}
    return {"name": "main", "resources": {"limits": limits}}


SIDECAR: dict[str, Any] = {"name": "sidecar"}


def a_pod(
    *containers: Mapping[str, Any],
    init: Sequence[Mapping[str, Any]] = (),
    annotations: Mapping[str, str] | None = None,
    uid: str = "uid-pod",
    namespace: str = "default",
) -> dict[str, Any]:
    return {
        "metadata": {"name": "pod", "namespace": namespace, "uid": uid, "annotations": dict(annotations or {})},
        "spec": {"initContainers": list(init), "containers": list(containers or [ask_for()])},
        "status": {"phase": "Pending"},
    }


def a_running_pod(devices: str, node: str = "node-a", uid: str = "uid-running", **fields: Any) -> dict[str, Any]:
    """A pod that holds `devices` (the annotation's text) on `node`."""
    pod = a_pod(SIDECAR, uid=uid, **fields)
    pod["metadata"]["annotations"] |= {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": devices}
    pod["status"] = {"phase": "Running"}
    return pod


def a_quota(name: str = "quota", namespace: str = "default", **hard: Any) -> dict[str, Any]:
    limits = {f"limits.nvidia.com/{key}": value for key, value in hard.items()}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"hard": limits}}


def a_cluster(*nodes: Mapping[str, Any], pods: Sequence[Mapping[str, Any]] = ()) -> ClusterColumns:
    columns = ClusterColumns()
    for node in nodes or [a_node()]:
        columns.apply_node(node)
    for pod in pods:
        columns.apply_pod(pod)
    return columns


def decide_on(
    columns: ClusterColumns, pod: Mapping[str, Any], *names: str, policy: SchedulingPolicy | None = None
) -> Decision:
    """Decide on the named nodes, or on all registered ones."""
    answer = decide(columns, pod, names or columns.node_names, policy or SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def get_reason(decision: Decision, node: str = "node-a") -> str | None:
    return decision.list_failed_nodes().get(node)


def list_granted_uuids(decision: Decision) -> list[list[str]]:
    """List the UUIDs granted to each container on the chosen node."""
    assert decision.allocation
    return [[grant.uuid for grant in grants] for grants in decision.allocation.containers]

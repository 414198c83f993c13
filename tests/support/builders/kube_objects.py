"""Kubernetes objects with what a test does not name filled in."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.annotations import REGISTER
from schemas.json_types import Json

STARTED = datetime(2026, 11, 21, 3, 0, 0, 123456, tzinfo=UTC)


def a_device(uuid: str, **fields: Any) -> Json:
    device = {"id": uuid, "count": 10, "devmem": 45912, "devcore": 100, "type": "NVIDIA A40", "health": True}
    return device | {"mode": "hami-core"} | fields


def a_node(
    name: str = "node1", devices: int | Sequence[Json] = 8, annotations: Mapping[str, str] | None = None
) -> Json:
    listed = (
        [a_device(f"GPU-{name}-{index}", index=index) for index in range(devices)]
        if isinstance(devices, int)
        else devices
    )
    all_annotations = {REGISTER: json.dumps(listed)} | dict(annotations or {})
    metadata = {"name": name, "annotations": all_annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {}}


def a_container(name: str = "main", gpus: int = 1, **limits: int) -> Json:
    amounts: Json = {f"nvidia.com/{word}": amount for word, amount in limits.items()}
    return {"name": name, "resources": {"limits": amounts | ({"nvidia.com/gpu": gpus} if gpus else {})}}


def a_pod(
    name: str = "pod1",
    containers: Sequence[Json] | None = None,
    annotations: Mapping[str, str] | None = None,
    **metadata: Any,
) -> Json:
    plain = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": dict(annotations or {})}
    spec = {"containers": list(containers or [a_container(gpumem=3000, gpucores=30)])}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": plain | metadata, "spec": spec, "status": {}}


def a_cluster(*nodes: Json) -> ClusterColumns:
    columns = ClusterColumns()
    for node in nodes:
        columns.apply_node(node)
    return columns

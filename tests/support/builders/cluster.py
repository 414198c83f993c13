"""Kubernetes objects as an API server stores them, for tests that judge pods on a snapshot."""

from typing import Any

Object = dict[str, Any]


def a_node(name: str = "n1", *, labels: dict[str, str] | None = None, taints: Any = (), **amounts: str) -> Object:
    """Build a Node of 8 CPU, 16Gi and 110 pods; amounts: others, by resource with ``_`` for what names cannot hold."""
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"} | {
        _name_resource(key): text for key, text in amounts.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": allocatable, "capacity": dict(allocatable)},
    }


def a_pod(name: str = "p1", *, node: str = "", labels: dict[str, str] | None = None, **requests: str) -> Object:
    """Build a Pod of one container; requests: amounts by resource. Without a node the pod waits."""
    resources = {"requests": {_name_resource(key): text for key, text in requests.items()}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "resources": resources}], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def a_taint(key: str, value: str = "", effect: str = "NoSchedule") -> Object:
    """Build a taint of a node."""
    return {"key": key, "value": value, "effect": effect}


_RESOURCES = {"gpu": "nvidia.com/gpu", "ephemeral_storage": "ephemeral-storage"}


def _name_resource(key: str) -> str:
    return _RESOURCES.get(key, key)

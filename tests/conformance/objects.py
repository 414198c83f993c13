"""Kubernetes objects from the short forms of the recorded cases."""

from collections.abc import Iterable, Mapping
from typing import Any


def build_quota(quota: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": quota["name"], "namespace": quota["namespace"]},
        "spec": {"hard": quota["hard"]},
    }


def build_node(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": state.get("annotations") or {}, "labels": state.get("labels") or {}},
        "status": {"allocatable": state.get("allocatable") or {}, "capacity": state.get("capacity") or {}},
    }


def build_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Build a Kubernetes Pod from the data's short form."""
    return {
        "metadata": {
            **{key: pod[key] for key in ("name", "namespace", "uid", "annotations")},
            **({"deletionTimestamp": "2026-11-21T03:00:00Z"} if pod.get("deleting") else {}),
        },
        "spec": {
            "initContainers": _build_containers(pod["initContainers"] or ()),
            "containers": _build_containers(pod["containers"] or ()),
        },
        "status": {
            "phase": pod.get("phase", "Pending"),
            "initContainerStatuses": [_build_init_status(code) for code in pod.get("init_container_exit_codes") or ()],
        },
    }


def _build_containers(listed: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": spec["name"], "resources": {key: spec[key] for key in ("limits", "requests") if key in spec}}
        for spec in listed
    ]


def _build_init_status(code: int) -> dict[str, Any]:
    return {"state": {"running": {}} if code < 0 else {"terminated": {"exitCode": code}}}

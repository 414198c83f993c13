"""Builders of workloads, their pods and nodes, as a cluster stores them."""

from datetime import UTC, datetime
from typing import Any

from schemas.json_types import Json

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)


def to_stamp(minute: int) -> str:
    return f"2026-01-01T12:{minute:02}:00Z"


def a_node(name: str, cpu: str = "4") -> Json:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": amounts, "capacity": amounts}}  # fmt: skip


def a_template(cpu: str) -> Json:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    return {"metadata": {"labels": {"app": "train"}},
            "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]}}  # fmt: skip


def an_owner(kind: str, name: str, version: str = "batch/v1") -> Json:
    return {"apiVersion": version, "kind": kind, "name": name, "controller": True}


def a_workload(version: str, kind: str, name: str, spec: Json, *owners: Json, **more: Any) -> Json:
    metadata = {"name": name, "namespace": "ml", "creationTimestamp": to_stamp(0), "ownerReferences": list(owners)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": {}, **more}


def a_job(name: str = "train", *, cpu: str = "2", parallelism: int = 1, **spec: Any) -> Json:
    return a_workload("batch/v1", "Job", name, {"parallelism": parallelism, "template": a_template(cpu), **spec})


def a_pod(name: str, owner: Json, *, cpu: str = "2", node: str = "", phase: str = "Pending", **status: Any) -> Json:
    metadata = {"name": name, "namespace": "ml", "creationTimestamp": to_stamp(1), "labels": {"app": "train"},
                "ownerReferences": [owner]}  # fmt: skip
    spec = {**a_template(cpu)["spec"], "schedulerName": "default-scheduler", **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}

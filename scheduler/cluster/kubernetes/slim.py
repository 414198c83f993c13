"""Slim nodes and pods: only the fields that a decision or a bind reads, a tenth of the object. Pure.

Forty thousand pods as decoded JSON take a gigabyte; slim, and as JSON text, forty megabytes.
"""

from collections.abc import Mapping
from typing import Any, Final

from engine.hami.annotations import ASSIGNED_NODE, NODE_LOCK, POD_GROUP
from engine.hami.vendor_registrations import INSTANCE_TYPE
from schemas.json_types import Json

# kubectl keeps the whole manifest in it a second time.
_BULKY: Final = "kubectl.kubernetes.io/last-applied-configuration"


def slim_node(node: Mapping[str, Any]) -> Json:
    # resourceVersion: the node lock is written on the condition that it has not changed.
    metadata = _select(node["metadata"], "name", "uid", "resourceVersion")
    metadata["annotations"] = _slim_annotations(node)
    # AWS Neuron's devices are neighbours on some types of instances only.
    metadata["labels"] = _select(node["metadata"].get("labels") or {}, INSTANCE_TYPE)
    return {"metadata": metadata, "status": _select(node.get("status") or {}, "allocatable", "capacity")}


def slim_pod(pod: Mapping[str, Any]) -> Json:
    metadata = _select(pod["metadata"], "name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
    metadata["annotations"] = _slim_annotations(pod)
    # The only label that a decision reads: members of a pod group wait for a node's lock.
    metadata["labels"] = _select(pod["metadata"].get("labels") or {}, POD_GROUP)
    spec = pod.get("spec") or {}
    described = {}
    if ASSIGNED_NODE in metadata["annotations"]:
        # Of pods with devices, few among many, where they come from is published when they are first seen.
        metadata |= _select(pod["metadata"], "creationTimestamp", "ownerReferences", "labels")
        described = _select(spec, "priorityClassName", "priority", "serviceAccountName", "schedulerName")
    return {
        "metadata": metadata,
        "spec": _select(spec, "nodeName")
        | described
        | {key: _slim_containers(spec[key]) for key in ("initContainers", "containers") if spec.get(key)},
        # Once all init containers have succeeded, the pod holds only the app containers' part.
        "status": _slim_status(pod.get("status") or {}),
    }


def _slim_status(status: Mapping[str, Any]) -> Json:
    # When a pod was bound that was placed before this scheduler ran.
    scheduled = [condition for condition in status.get("conditions") or () if condition.get("type") == "PodScheduled"]
    return _select(status, "phase", "initContainerStatuses") | ({"conditions": scheduled} if scheduled else {})


def select_relevant(node: Mapping[str, Any]) -> Json:
    """Select the part of a slim node that a decision depends on: neither its version nor its lock."""
    annotations = {key: value for key, value in node["metadata"]["annotations"].items() if key != NODE_LOCK}
    return {"annotations": annotations, "labels": node["metadata"].get("labels", {}), "status": node["status"]}


def _slim_annotations(obj: Mapping[str, Any]) -> Json:
    annotations = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key != _BULKY}


def _slim_containers(listed: list[Mapping[str, Any]]) -> list[Json]:
    return [{"name": container.get("name", ""), "resources": _slim_resources(container)} for container in listed]


def _slim_resources(container: Mapping[str, Any]) -> Json:
    return _select(container.get("resources") or {}, "limits", "requests")


def _select(mapping: Mapping[str, Any], *names: str) -> Json:
    return {name: mapping[name] for name in names if name in mapping}

"""Objects without what no answer reads: managed fields, environments and commands of containers, images of nodes.

A cluster has ten thousand pods, and a whole pod takes 20 KiB of memory.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.json_types import Json

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_CONTAINERS: Final = ("initContainers", "containers")
_CONTAINER: Final = ("name", "resources", "ports", "restartPolicy")
FILE_VOLUMES: Final = frozenset(("configMap", "secret", "projected", "downwardAPI", "emptyDir", "hostPath", "image"))
"""Kinds of volumes that every node can provide."""
_UNREAD_NODE_STATUS: Final = ("images", "nodeInfo", "addresses", "daemonEndpoints", "volumesInUse", "volumesAttached")
_RUNNING_STATUS: Final = ("phase", "reason", "message", "startTime", "resources", "resourceClaimStatuses",
                         "extendedResourceClaimStatus")  # fmt: skip
"""Status of a pod that runs: its containers and conditions matter only to a question about this pod."""


def trim_object(kind: str, value: Fields) -> Json:
    """Return the object of a kind (``engine.snapshot.kinds``) without what no answer reads."""
    trimmed = {**value, "metadata": _trim_metadata(get_object(value, "metadata"))}
    if kind == kinds.POD:
        return _trim_pod(trimmed)
    if kind == kinds.NODE:
        trimmed["status"] = _omit(get_object(value, "status"), _UNREAD_NODE_STATUS)
    return trimmed


def _trim_metadata(metadata: Fields) -> Json:
    trimmed = _omit(metadata, ("managedFields", "generation", "selfLink"))
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        trimmed["annotations"] = _omit(annotations, (LAST_APPLIED,))
    return trimmed


def _trim_pod(pod: Json) -> Json:
    spec = dict(get_object(pod, "spec"))
    for name in _CONTAINERS:
        if name in spec:
            spec[name] = [_pick(container, _CONTAINER) for container in iterate_objects(spec, name)]
    if "volumes" in spec:
        spec["volumes"] = [volume for volume in iterate_objects(spec, "volumes") if FILE_VOLUMES.isdisjoint(volume)]
    trimmed = {**pod, "spec": spec}
    if get_text(spec, "nodeName") and get_text(pod, "status", "phase") == "Running" and not _has_restarted(pod):
        trimmed["status"] = _pick(get_object(pod, "status"), _RUNNING_STATUS)
    return trimmed


def _has_restarted(pod: Json) -> bool:
    return any(get_object(entry, "lastState") for entry in iterate_objects(pod, "status", "containerStatuses"))


def _omit(value: Mapping[str, Any], names: Iterable[str]) -> Json:
    return {name: entry for name, entry in value.items() if name not in names}


def _pick(value: Mapping[str, Any], names: Iterable[str]) -> Json:
    return {name: value[name] for name in names if name in value}

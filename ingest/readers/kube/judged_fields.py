"""Objects reduced to the fields that pods are judged by: they take little memory, and most updates change none.

A node's heartbeat or the condition of a waiting pod then leaves the object equal, so that what was judged before still
holds.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from engine.device_parts import koordinator, volcano
from engine.diagnosis.layers.group_members import GROUP_ANNOTATIONS
from engine.simulation.kai_shares import SHARE_ANNOTATIONS
from engine.snapshot import kinds
from engine.snapshot.trimming import FILE_VOLUMES, LAST_APPLIED
from runtime.kubernetes.object_fields import get_object, iterate_objects
from schemas.json_types import Json, JsonView

_METADATA: Final = (
    "name", "namespace", "uid", "labels", "annotations", "deletionTimestamp", "creationTimestamp", "ownerReferences",
)  # fmt: skip
_POD_METADATA: Final = ("name", "namespace", "uid", "labels", "deletionTimestamp", "creationTimestamp")
_ANNOTATIONS: Final = (*SHARE_ANNOTATIONS, *GROUP_ANNOTATIONS, koordinator.ALLOCATED, *volcano.ANNOTATIONS)
_WAITING_SPEC: Final = (
    "schedulerName", "priority", "preemptionPolicy", "overhead", "resources", "nodeSelector", "affinity", "tolerations",
    "topologySpreadConstraints", "schedulingGates", "resourceClaims", "hostNetwork", "hostUsers", "schedulingGroup",
)  # fmt: skip
_PLACED_SPEC: Final = ("nodeName", "schedulerName", "priority", "overhead", "resources")
"""Fields of a pod on a node, whose constraints bind nobody any more, except its anti-affinity."""
_CONTAINER: Final = ("name", "resources", "ports", "restartPolicy", "restartPolicyRules")
_STATUS: Final = (
    "phase", "nominatedNodeName", "startTime", "resources", "allocatedResources", "resourceClaimStatuses",
    "extendedResourceClaimStatus",
)  # fmt: skip
_CONDITIONS: Final = ("DisruptionTarget", "PodResizePending")
_CONTAINER_STATUSES: Final = ("containerStatuses", "initContainerStatuses")


def reduce_object(kind: str, value: JsonView) -> Json:
    """Reduce an object of a kind (`engine.snapshot.kinds`) to the fields that pods are judged by."""
    return _REDUCERS.get(kind, _reduce_other)(value)


def reduce_waiting_pod(pod: JsonView) -> Json:
    """Reduce a pod that waits; all of its constraints count."""
    spec = get_object(pod, "spec")
    return _build_pod(pod, _pick(spec, _WAITING_SPEC) | _reduce_containers(spec) | _reduce_volumes(spec))


def reduce_placed_pod(pod: JsonView) -> Json:
    """Reduce a pod on a node, or one that a node is set apart for."""
    spec = get_object(pod, "spec")
    anti_affinity = _pick(get_object(spec, "affinity"), ("podAntiAffinity",))
    remaining = _pick(spec, _PLACED_SPEC) | _reduce_containers(spec) | _reduce_volumes(spec)
    return _build_pod(pod, {**remaining, "affinity": anti_affinity} if anti_affinity else remaining)


def _build_pod(pod: JsonView, spec: Mapping[str, Any]) -> Json:
    status = get_object(pod, "status")
    reduced = _pick(status, _STATUS)
    conditions = [entry for entry in iterate_objects(status, "conditions") if entry.get("type") in _CONDITIONS]
    if conditions:
        reduced["conditions"] = [_pick(entry, ("type", "status", "reason")) for entry in conditions]
    for name in _CONTAINER_STATUSES:
        resized = [entry for entry in iterate_objects(status, name) if entry.get("resources") is not None]
        if resized:
            reduced[name] = [_pick(entry, ("name", "resources", "allocatedResources")) for entry in resized]
    metadata = _pick(get_object(pod, "metadata"), _POD_METADATA)
    if annotations := _pick(get_object(pod, "metadata", "annotations"), _ANNOTATIONS):
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(spec), "status": reduced}


def _reduce_containers(spec: JsonView) -> Json:
    return {
        name: [_pick(container, _CONTAINER) for container in iterate_objects(spec, name)]
        for name in ("initContainers", "containers")
        if spec.get(name)
    }


def _reduce_volumes(spec: JsonView) -> Json:
    volumes = [volume for volume in iterate_objects(spec, "volumes") if FILE_VOLUMES.isdisjoint(volume)]
    return {"volumes": volumes} if "volumes" in spec else {}


def _reduce_node(node: JsonView) -> Json:
    metadata = _pick(get_object(node, "metadata"), ("name", "uid", "labels"))
    if annotations := _pick(get_object(node, "metadata", "annotations"), (volcano.REGISTER,)):
        metadata["annotations"] = annotations
    spec = _pick(get_object(node, "spec"), ("taints", "unschedulable"))
    status = _pick(get_object(node, "status"), ("allocatable", "capacity", "declaredFeatures"))
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _reduce_namespace(namespace: JsonView) -> Json:
    metadata = _pick(get_object(namespace, "metadata"), ("name", "labels"))
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _reduce_other(value: JsonView) -> Json:
    metadata = _pick(get_object(value, "metadata"), _METADATA)
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    return {**value, "metadata": metadata}


_REDUCERS: Final[Mapping[str, Callable[[JsonView], Json]]] = {
    kinds.POD: reduce_placed_pod,
    kinds.NODE: _reduce_node,
    kinds.NAMESPACE: _reduce_namespace,
}


def _pick(value: JsonView, names: Iterable[str]) -> Json:
    return {name: value[name] for name in names if value.get(name) not in (None, {}, [])}

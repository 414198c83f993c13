"""Objects for a question about pods, read from a live cluster: the pod's namespace, nodes and pods, groups and queues.

The reading climbs as far as the user's rights allow: the pod with its events, claims and quotas; then nodes and all
pods, on which the pod is judged; then the objects of queues and gangs that the cluster has.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from cli.client.problems import NotFound, Problem
from cli.direct.reader import ListedKind, ObjectReader, ReadObjects
from engine.snapshot import kinds
from ingest.cases.read_case import ClusterCase, build_case
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

EVENTS: Final = "Event"
_STORAGE: Final = (
    ListedKind(kinds.VOLUME, "/api/v1/persistentvolumes"),
    ListedKind(kinds.STORAGE_CLASS, "/apis/storage.k8s.io/v1/storageclasses"),
    ListedKind(kinds.CSI_NODE, "/apis/storage.k8s.io/v1/csinodes"),
    ListedKind(kinds.CSI_DRIVER, "/apis/storage.k8s.io/v1/csidrivers"),
    ListedKind(kinds.VOLUME_ATTACHMENT, "/apis/storage.k8s.io/v1/volumeattachments"),
)
_DEVICES: Final = (
    (kinds.RESOURCE_CLAIM, "resourceclaims", True),
    (kinds.CLAIM_TEMPLATE, "resourceclaimtemplates", True),
    (kinds.RESOURCE_SLICE, "resourceslices", False),
    (kinds.DEVICE_CLASS, "deviceclasses", False),
)
_DEVICE_GROUP: Final = "resource.k8s.io"
_GROUPS: Final = (
    ("kueue.x-k8s.io", "workloads", True),
    ("kueue.x-k8s.io", "localqueues", True),
    ("kueue.x-k8s.io", "clusterqueues", False),
    ("scheduling.volcano.sh", "podgroups", True),
    ("scheduling.volcano.sh", "queues", False),
    ("scheduling.x-k8s.io", "podgroups", True),
    ("scheduling.sigs.k8s.io", "podgroups", True),
    ("scheduling.sigs.k8s.io", "elasticquotas", True),
    ("scheduling.run.ai", "podgroups", True),
    ("scheduling.run.ai", "queues", False),
)
"""API group, plural, and whether the objects are in namespaces: queues and gangs of the schedulers that are read."""
_SINGULAR: Final = {
    "workloads": "Workload", "localqueues": "LocalQueue", "clusterqueues": "ClusterQueue", "podgroups": "PodGroup",
    "queues": "Queue", "elasticquotas": "ElasticQuota",
}  # fmt: skip
NODES: Final = ListedKind(kinds.NODE, "/api/v1/nodes")
PODS: Final = ListedKind(kinds.POD, "/api/v1/pods")


@dataclass(frozen=True, slots=True)
class LiveCase:
    """A case of a live cluster, and what the user may not read of it."""

    case: ClusterCase
    pod: Json | None
    """Object of the pod; None if the pod does not exist."""
    problems: dict[str, Problem] = field(default_factory=dict)
    """By kind (``engine.snapshot.kinds``)."""


def read_pod_case(reader: ObjectReader, namespace: str, name: str) -> LiveCase | Problem:
    """Read a case about one pod; a problem if the pod itself can't be read."""
    pod = reader.get(f"{_build_root('/api/v1', namespace)}/pods/{quote(name, safe='')}")
    if isinstance(pod, Problem) and not isinstance(pod, NotFound):
        return pod
    existing = None if isinstance(pod, Problem) else {"apiVersion": "v1", "kind": "Pod", **pod}
    read = reader.list_kinds([*_list_own(namespace), *_list_needed(reader, existing, namespace)])
    return _finish(reader, read, existing, namespace)


def read_waiting_case(reader: ObjectReader, namespace: str = "") -> LiveCase:
    """Read a case about all pods, or those of one namespace."""
    listed = [*(_list_own(namespace) if namespace else [ListedKind(EVENTS, "/api/v1/events")]), NODES, PODS, *_STORAGE]
    return _finish(reader, reader.list_kinds(listed), None, namespace)


def _finish(reader: ObjectReader, read: ReadObjects, pod: Json | None, namespace: str) -> LiveCase:
    if kinds.POD in read.problems and namespace:
        # A user who may not list all pods may still list the pods of the namespace.
        namespace_pods = reader.list_kinds([ListedKind(kinds.POD, f"{_build_root('/api/v1', namespace)}/pods")])
        read.objects += namespace_pods.objects
    objects = [*read.objects, *([pod] if pod else [])]
    return LiveCase(build_case(objects, read.problems, datetime.now(UTC)), pod, read.problems)


def _list_own(namespace: str) -> list[ListedKind]:
    root = _build_root("/api/v1", namespace)
    return [
        ListedKind(EVENTS, f"{root}/events"),
        ListedKind(kinds.VOLUME_CLAIM, f"{root}/persistentvolumeclaims"),
        ListedKind(kinds.RESOURCE_QUOTA, f"{root}/resourcequotas"),
    ]


def _list_needed(reader: ObjectReader, pod: Json | None, namespace: str) -> Iterator[ListedKind]:
    """List the kinds that a verdict on this pod needs; a pod that has a node needs none."""
    if pod is None:
        # The names of the others, among which the meant one may be.
        yield PODS
        return
    if get_text(pod, "spec", "nodeName"):
        return
    yield from (NODES, PODS)
    spec = get_object(pod, "spec")
    if any(
        get_object(volume, "persistentVolumeClaim") or get_object(volume, "ephemeral")
        for volume in iterate_objects(spec, "volumes")
    ):
        yield from _STORAGE
    if _has_affinity_of_pods(spec):
        yield ListedKind(kinds.NAMESPACE, "/api/v1/namespaces")
    versions = _list_versions(reader)
    if spec.get("resourceClaims") and (version := versions.get(_DEVICE_GROUP)):
        for kind, plural, is_namespaced in _DEVICES:
            is_own = is_namespaced and kind == kinds.CLAIM_TEMPLATE
            root = f"/apis/{_DEVICE_GROUP}/{version}"
            yield ListedKind(kind, f"{_build_root(root, namespace) if is_own else root}/{plural}")
    for group, plural, is_namespaced in _GROUPS:
        if version := versions.get(group):
            root = f"/apis/{group}/{version}"
            path = f"{_build_root(root, namespace) if is_namespaced else root}/{plural}"
            yield ListedKind(f"{_SINGULAR[plural]}.{group}", path)


def _has_affinity_of_pods(spec: Any) -> bool:
    return bool(get_object(spec, "affinity", "podAffinity") or get_object(spec, "affinity", "podAntiAffinity"))


def _list_versions(reader: ObjectReader) -> dict[str, str]:
    """List the API groups of the cluster with the version that it prefers; empty if they can't be read."""
    groups = reader.get("/apis")
    if isinstance(groups, Problem):
        return {}
    return {
        get_text(group, "name"): get_text(group, "preferredVersion", "version")
        for group in iterate_objects(groups, "groups")
    }


def _build_root(root: str, namespace: str) -> str:
    return f"{root}/namespaces/{quote(namespace, safe='')}"

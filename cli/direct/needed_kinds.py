"""Kinds of objects that an answer needs, with the paths of their collections on the API server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from cli.client.problems import Problem
from cli.direct.reader import ListedKind, ObjectReader
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

EVENTS: Final = "Event"
STORAGE: Final = (
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
_NATIVE_GROUP: Final = "scheduling.k8s.io"
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
PODS: Final = ListedKind(kinds.POD, "/api/v1/pods", {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"})
"""Pods that may hold something: others have given it back."""


def list_own(namespace: str) -> list[ListedKind]:
    """List what everybody who may see a namespace may read of it."""
    root = build_root("/api/v1", namespace)
    return [
        ListedKind(EVENTS, f"{root}/events"),
        ListedKind(kinds.VOLUME_CLAIM, f"{root}/persistentvolumeclaims"),
        ListedKind(kinds.RESOURCE_QUOTA, f"{root}/resourcequotas"),
    ]


def list_for_verdict(spec: Fields, namespace: str, versions: "GroupVersions") -> Iterator[ListedKind]:
    """List the kinds that a verdict on a pod of this spec needs: nodes, all pods, and what the spec names."""
    yield from (NODES, PODS)
    if any(
        get_object(volume, "persistentVolumeClaim") or get_object(volume, "ephemeral")
        for volume in iterate_objects(spec, "volumes")
    ):
        yield from STORAGE
    if get_object(spec, "affinity", "podAffinity") or get_object(spec, "affinity", "podAntiAffinity"):
        yield ListedKind(kinds.NAMESPACE, "/api/v1/namespaces")
    if spec.get("resourceClaims") and (version := versions.find_preferred(_DEVICE_GROUP)):
        for kind, plural, is_namespaced in _DEVICES:
            is_own = is_namespaced and kind == kinds.CLAIM_TEMPLATE
            root = f"/apis/{_DEVICE_GROUP}/{version}"
            yield ListedKind(kind, f"{build_root(root, namespace) if is_own else root}/{plural}")


def list_queues(namespace: str, versions: "GroupVersions") -> Iterator[ListedKind]:
    """List the kinds of queues and gangs that the cluster has."""
    for group, plural, is_namespaced in _GROUPS:
        if version := versions.find_preferred(group):
            root = f"/apis/{group}/{version}"
            path = f"{build_root(root, namespace) if is_namespaced else root}/{plural}"
            yield ListedKind(f"{_SINGULAR[plural]}.{group}", path)
    # The group's preferred version is that of priority classes, and has no gangs.
    for version in versions.list_others(_NATIVE_GROUP):
        root = build_root(f"/apis/{_NATIVE_GROUP}/{version}", namespace)
        for plural in ("podgroups", "workloads"):
            yield ListedKind(f"{_SINGULAR[plural]}.{_NATIVE_GROUP}", f"{root}/{plural}")


def list_named(owner: Fields, namespace: str) -> ListedKind:
    """List one object by its entry in ``ownerReferences``."""
    version, kind = get_text(owner, "apiVersion"), get_text(owner, "kind")
    query = {"fieldSelector": f"metadata.name={get_text(owner, 'name')}"}
    return ListedKind(kinds.identify(version, kind), build_collection_path(version, kind, namespace), query)


def build_collection_path(version: str, kind: str, namespace: str) -> str:
    """Build the path of a kind's objects in a namespace; every kind of workload has a regular plural."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{build_root(root, namespace) if namespace else root}/{kind.lower()}s"


@dataclass(frozen=True, slots=True)
class GroupVersions:
    """API groups of a cluster with their versions, the preferred one first."""

    versions: Mapping[str, tuple[str, ...]]

    def find_preferred(self, group: str) -> str:
        """Find the preferred version of a group; empty if the cluster does not have the group."""
        return next(iter(self.versions.get(group, ())), "")

    def list_others(self, group: str) -> tuple[str, ...]:
        """List the versions of a group next to the preferred one."""
        return self.versions.get(group, ())[1:]


def read_versions(reader: ObjectReader) -> GroupVersions:
    """Read the API groups of the cluster; none if they can't be read."""
    groups = reader.get("/apis")
    if isinstance(groups, Problem):
        return GroupVersions({})
    return GroupVersions(
        {get_text(group, "name"): _list_versions(group) for group in iterate_objects(groups, "groups")}
    )


def _list_versions(group: Fields) -> tuple[str, ...]:
    preferred = get_text(group, "preferredVersion", "version")
    listed = [get_text(entry, "version") for entry in iterate_objects(group, "versions")]
    return tuple(dict.fromkeys([preferred, *listed]))


def build_root(root: str, namespace: str) -> str:
    """Build the path of a namespace below that of a version."""
    return f"{root}/namespaces/{quote(namespace, safe='')}"

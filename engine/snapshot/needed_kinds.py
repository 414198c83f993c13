"""Collections of the API server that a diagnosis of a pod needs, by what the pod names and what the cluster has. Pure.

Nobody needs all of them: a pod without volumes needs no volumes, and a cluster without Kueue has no Workloads.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from engine.hami.vendor_catalog import is_share_resource
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

EVENTS: Final = "Event"
API_GROUPS: Final = "/apis"
"""Path of the list of the cluster's API groups."""
_DEVICE_GROUP: Final = "resource.k8s.io"
_NATIVE_GROUP: Final = "scheduling.k8s.io"


class ListedKind(NamedTuple):
    """A kind of objects to list: its name (``engine.snapshot.kinds``), and the path of its collection."""

    kind: str
    path: str
    query: Mapping[str, str] = {}


STORAGE: Final = (
    ListedKind(kinds.VOLUME, "/api/v1/persistentvolumes"),
    ListedKind(kinds.STORAGE_CLASS, "/apis/storage.k8s.io/v1/storageclasses"),
    ListedKind(kinds.CSI_NODE, "/apis/storage.k8s.io/v1/csinodes"),
    ListedKind(kinds.CSI_DRIVER, "/apis/storage.k8s.io/v1/csidrivers"),
    ListedKind(kinds.VOLUME_ATTACHMENT, "/apis/storage.k8s.io/v1/volumeattachments"),
)
CREATION: Final = (
    ListedKind(kinds.RESOURCE_QUOTA, "/api/v1/resourcequotas"),
    ListedKind(kinds.LIMIT_RANGE, "/api/v1/limitranges"),
    ListedKind(kinds.PRIORITY_CLASS, "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ListedKind(kinds.RUNTIME_CLASS, "/apis/node.k8s.io/v1/runtimeclasses"),
)
"""Kinds by which the API server completes or refuses a new pod."""
BUDGETS: Final = ListedKind(kinds.DISRUPTION_BUDGET, "/apis/policy/v1/poddisruptionbudgets")
WEBHOOKS: Final = (
    ListedKind(kinds.MUTATING_WEBHOOKS, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
    ListedKind(kinds.NAMESPACE, "/api/v1/namespaces"),
)
"""Kinds that say why a webhook was not called."""
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Label by which a pod or a Job names a queue of Kueue."""
KUEUE_MANAGED: Final = "kueue.x-k8s.io/managed"
"""Label that Kueue's webhook adds to a pod."""
_CREATION_IN_NAMESPACE: Final = (kinds.RESOURCE_QUOTA, kinds.LIMIT_RANGE)
NODES: Final = ListedKind(kinds.NODE, "/api/v1/nodes")
PODS: Final = ListedKind(kinds.POD, "/api/v1/pods", {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"})
"""Pods that may hold something: others have given it back."""
_DEVICES: Final = (
    (kinds.RESOURCE_CLAIM, "resourceclaims"), (kinds.CLAIM_TEMPLATE, "resourceclaimtemplates"),
    (kinds.RESOURCE_SLICE, "resourceslices"), (kinds.DEVICE_CLASS, "deviceclasses"),
)  # fmt: skip
"""Kind and plural. Claims of all namespaces hold devices."""
_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Beginning of the resource by which a pod may ask for any device class."""


class _GroupKind(NamedTuple):
    """A kind of queues or groups. ``is_namespaced``: its objects are in namespaces."""

    group: str
    kind: str
    plural: str
    is_namespaced: bool = True


_QUEUES: Final = (
    _GroupKind("kueue.x-k8s.io", "Workload", "workloads"),
    _GroupKind("kueue.x-k8s.io", "LocalQueue", "localqueues"),
    _GroupKind("kueue.x-k8s.io", "ClusterQueue", "clusterqueues", is_namespaced=False),
    _GroupKind("kueue.x-k8s.io", "ResourceFlavor", "resourceflavors", is_namespaced=False),
    _GroupKind("autoscaling.x-k8s.io", "ProvisioningRequest", "provisioningrequests"),
    _GroupKind("scheduling.volcano.sh", "PodGroup", "podgroups"),
    _GroupKind("scheduling.volcano.sh", "Queue", "queues", is_namespaced=False),
    _GroupKind("scheduling.x-k8s.io", "PodGroup", "podgroups"),
    _GroupKind("scheduling.sigs.k8s.io", "PodGroup", "podgroups"),
    _GroupKind("scheduling.sigs.k8s.io", "ElasticQuota", "elasticquotas"),
    _GroupKind("scheduling.run.ai", "PodGroup", "podgroups"),
    _GroupKind("scheduling.run.ai", "Queue", "queues", is_namespaced=False),
)
"""Queues and groups of the systems that ``engine.diagnosis.layers`` reads; to read another one, add its kinds."""
_SHARED_DEVICES: Final = _GroupKind("scheduling.koordinator.sh", "Device", "devices", is_namespaced=False)
_NATIVE: Final = (
    _GroupKind(_NATIVE_GROUP, "PodGroup", "podgroups"), _GroupKind(_NATIVE_GROUP, "Workload", "workloads"),
)  # fmt: skip


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


def parse_versions(groups: Fields) -> GroupVersions:
    """Parse the answer to ``API_GROUPS``."""
    return GroupVersions(
        {get_text(group, "name"): _list_versions(group) for group in iterate_objects(groups, "groups")}
    )


def _list_versions(group: Fields) -> tuple[str, ...]:
    preferred = get_text(group, "preferredVersion", "version")
    listed = [get_text(entry, "version") for entry in iterate_objects(group, "versions")]
    return tuple(dict.fromkeys([preferred, *listed]))


def list_own(namespace: str) -> list[ListedKind]:
    """List what everybody who may see a namespace may read of it."""
    root = build_root("/api/v1", namespace)
    return [
        ListedKind(EVENTS, f"{root}/events"),
        ListedKind(kinds.VOLUME_CLAIM, f"{root}/persistentvolumeclaims"),
        ListedKind(kinds.RESOURCE_QUOTA, f"{root}/resourcequotas"),
    ]


def list_creation(namespace: str) -> list[ListedKind]:
    """List the kinds by which the API server completes or refuses a new pod of a namespace."""
    return [
        listed._replace(path=f"{build_root('/api/v1', namespace)}/{listed.path.rpartition('/')[2]}")
        if listed.kind in _CREATION_IN_NAMESPACE
        else listed
        for listed in CREATION
    ]


def list_simulated(versions: GroupVersions) -> list[ListedKind]:
    """List everything that decides whether and where a pod starts that does not exist yet, or moves."""
    others = (
        ListedKind(kinds.VOLUME_CLAIM, "/api/v1/persistentvolumeclaims"),
        ListedKind(kinds.NAMESPACE, "/api/v1/namespaces"),
    )
    return [NODES, PODS, *STORAGE, *others, *CREATION, BUDGETS, *list_devices(versions), *list_shared_devices(versions)]


def list_node(name: str) -> ListedKind:
    """List one node by its name, with the right to list nodes."""
    return NODES._replace(query={"fieldSelector": f"metadata.name={name}"})


def list_for_verdict(spec: Fields, versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kinds that a verdict on a pod of this spec needs: nodes, all pods, and what the spec names."""
    yield from (NODES, PODS)
    if any(
        get_object(volume, "persistentVolumeClaim") or get_object(volume, "ephemeral")
        for volume in iterate_objects(spec, "volumes")
    ):
        yield from STORAGE
    if get_object(spec, "affinity", "podAffinity") or get_object(spec, "affinity", "podAntiAffinity"):
        yield ListedKind(kinds.NAMESPACE, "/api/v1/namespaces")
    devices = list(list_devices(versions))
    # A resource may be that of a device class (KEP 5004).
    yield from devices if spec.get("resourceClaims") else devices[-1:] if _list_extended(spec) else ()


def list_devices(versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kinds of claims and devices (DRA) that the cluster has."""
    if version := versions.find_preferred(_DEVICE_GROUP):
        for kind, plural in _DEVICES:
            yield ListedKind(kind, f"/apis/{_DEVICE_GROUP}/{version}/{plural}")


def list_devices_of_resources(spec: Fields, classes: Iterable[Fields], versions: GroupVersions) -> list[ListedKind]:
    """List the kinds of claims and devices if a class serves a resource that the pod requests."""
    resources = _list_extended(spec)
    served = {get_text(entry, "spec", "extendedResourceName") for entry in classes}
    is_served = any(name in served or name.startswith(_CLASS_PREFIX) for name in resources)
    return list(list_devices(versions)) if is_served and not spec.get("resourceClaims") else []


def _list_extended(spec: Fields) -> set[str]:
    """List the resources with a domain that a pod's containers request."""
    containers = (entry for name in ("initContainers", "containers") for entry in iterate_objects(spec, name))
    return {name for entry in containers for name in get_object(entry, "resources", "limits") if "/" in name}


def list_queues(namespace: str, versions: GroupVersions) -> Iterator[ListedKind]:
    """List the kinds of queues and groups that the cluster has; those of all namespaces where none is named."""
    for entry in _QUEUES:
        if version := versions.find_preferred(entry.group):
            yield _build_collection(entry, version, namespace)
    # The group's preferred version is that of priority classes, and has no groups of pods.
    for version in versions.list_others(_NATIVE_GROUP):
        for entry in _NATIVE:
            yield _build_collection(entry, version, namespace)


def list_shared_devices(versions: GroupVersions) -> list[ListedKind]:
    """List the kinds of objects that name the devices of nodes and that the cluster has."""
    version = versions.find_preferred(_SHARED_DEVICES.group)
    return [_build_collection(_SHARED_DEVICES, version, "")] if version else []


def list_webhooks(pod: Fields) -> list[ListedKind]:
    """List the kinds that say why a webhook was not called for a pod that lacks what it writes.

    Empty for a pod that neither asks Kubernetes' own scheduler for parts of devices nor names a queue of Kueue that has
    not taken it in.
    """
    labels, spec = get_object(pod, "metadata", "labels"), get_object(pod, "spec")
    is_hamis = get_text(spec, "schedulerName") not in ("", "default-scheduler")
    lacks_scheduler = not is_hamis and any(map(is_share_resource, _list_extended(spec)))
    lacks_gate = KUEUE_QUEUE in labels and KUEUE_MANAGED not in labels
    return list(WEBHOOKS) if lacks_scheduler or lacks_gate else []


def _build_collection(entry: _GroupKind, version: str, namespace: str) -> ListedKind:
    root = f"/apis/{entry.group}/{version}"
    path = build_root(root, namespace) if entry.is_namespaced and namespace else root
    return ListedKind(f"{entry.kind}.{entry.group}", f"{path}/{entry.plural}")


def list_named(owner: Fields, namespace: str) -> ListedKind:
    """List one object by its entry in ``ownerReferences``."""
    version, kind = get_text(owner, "apiVersion"), get_text(owner, "kind")
    query = {"fieldSelector": f"metadata.name={get_text(owner, 'name')}"}
    return ListedKind(kinds.identify(version, kind), build_collection_path(version, kind, namespace), query)


def build_collection_path(version: str, kind: str, namespace: str) -> str:
    """Build the path of a kind's objects in a namespace; every kind of workload has a regular plural."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{build_root(root, namespace) if namespace else root}/{quote(kind.lower(), safe='')}s"


def build_root(root: str, namespace: str) -> str:
    """Build the path of a namespace below that of a version."""
    return f"{root}/namespaces/{quote(namespace, safe='')}"

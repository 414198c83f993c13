"""A described cluster in the forms that a simulation needs: devices for HAMi's fit, a snapshot for the filters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from engine.claims.gates import select_gates
from engine.claims.inventory import Inventory, read_inventory
from engine.filters.release import LATEST
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.shared_nodes import list_shared_nodes
from engine.fit.manifests import Manifest
from engine.hami.node_checks import is_deleted
from engine.hami.releases import HamiRelease
from engine.hami.vendors import Form, Vendors
from engine.simulation.completion import Assumptions, complete_objects
from engine.simulation.equal_nodes import NodeKindReader
from engine.simulation.own_schedulers import list_own_schedulers
from engine.snapshot import kinds
from engine.snapshot.reading import change_snapshot, read_snapshot
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

_HAMI_PREFIX: Final = "hami.io/"


class DescribedObjects(tuple[Json, ...]):  # noqa: SLOT001 - it keeps its tables
    """Plain objects of every kind, found by their kind."""

    @cached_property
    def by_kind(self) -> Mapping[str, list[Json]]:
        """Objects by kind, without its group."""
        tables: dict[str, list[Json]] = {}
        for item in self:
            tables.setdefault(str(item.get("kind")), []).append(item)
        return tables

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Names of the kinds (`engine.snapshot.kinds`)."""
        pairs = {(get_text(item, "apiVersion"), get_text(item, "kind")) for item in self}
        return frozenset(kinds.identify(*pair) for pair in pairs)

    @cached_property
    def pod_keys(self) -> frozenset[tuple[str, str]]:
        """Namespaces and names of the pods."""
        pods = (get_object(item, "metadata") for item in self.by_kind.get(kinds.POD, ()))
        return frozenset((get_text(metadata, "namespace"), get_text(metadata, "name")) for metadata in pods)


class DeviceReader:
    """Reads devices and claims of snapshots; what has not changed since the latest one is not read again."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._latest: Inventory | None = None

    def read(self, snapshot: Snapshot) -> Inventory:
        """Read the inventory of a snapshot."""
        self._latest = read_inventory(snapshot, select_gates(LATEST), previous=self._latest)
        return self._latest


@dataclass(frozen=True, slots=True)
class SimulationCluster:
    """A cluster at one moment. Its columns are changed by pods that are placed in it."""

    columns: ClusterColumns
    snapshot: Snapshot
    objects: DescribedObjects
    """Plain objects, completed."""
    release: HamiRelease
    assumptions: Assumptions
    deleted_handshakes: Mapping[str, tuple[str, str]]
    """Nodes whose handshake says ``Deleted_…``, with the annotation and its text."""
    has_hami: bool
    """True if a node or pod carries an annotation of HAMi, so that device resources are its scheduler's."""
    left_out: Sequence[str] = ()
    """Registered nodes that this release of HAMi leaves out for their handshake."""
    unfiltered: tuple[str, ...] = ()
    """Nodes whose objects were not read: the filters let them pass unseen."""
    has_pods: bool = True
    """True if the snapshot has the pods of the cluster, or the cluster has none."""
    listed: frozenset[str] = frozenset()
    """Kinds of which all objects are known, also if there is none."""
    withheld: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Schedulers of ours that run in the cluster, to the nodes that they leave to another one, with the cause; an empty
    one for a node whose labels they don't look at. Of a node without columns only that cause is recorded."""
    selectors: Mapping[str, str] = field(default_factory=dict)
    """Labels of the nodes that schedulers of ours look at, by scheduler; empty for all nodes."""
    devices: DeviceReader = field(default_factory=DeviceReader)
    node_kinds: NodeKindReader = field(default_factory=NodeKindReader)

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.snapshot.nodes) + len(self.unfiltered)

    @property
    def vendors(self) -> Vendors:
        """The device table."""
        return self.columns.vendors

    @property
    def managed_resources(self) -> frozenset[str]:
        """Resources that kube-scheduler leaves to HAMi's extender (``ignoredByScheduler``)."""
        return frozenset(name for vendor in self.vendors for name in vendor.resources.names)

    def list_unrecorded(self, scheduler: str) -> frozenset[str]:
        """List the nodes whose devices are not recorded, because another scheduler leaves them to somebody else."""
        others = (nodes for name, nodes in self.withheld.items() if name != scheduler)
        return frozenset(
            name for nodes in others for name, cause in nodes.items() if cause and not self.columns.get_entry(name)
        )

    def get_nodes(self) -> dict[str, Json]:
        """Return the Node objects by name."""
        return {get_text(item, "metadata", "name"): item for item in self.list_kind("Node")}

    def list_kind(self, kind: str) -> list[Json]:
        """List the objects of a kind."""
        return self.objects.by_kind.get(kind, [])

    def with_objects(self, objects: Iterable[Json]) -> "SimulationCluster":
        """Return the cluster with more objects in its snapshot; the columns are the same."""
        return replace(self, snapshot=change_snapshot(self.snapshot, objects))


def build_cluster(
    manifest: Manifest, vendors: Vendors, release: HamiRelease, listed: frozenset[str] = frozenset()
) -> SimulationCluster:
    """Build the cluster of a file: its handshakes are a state and not the start of a scheduler.

    listed: kinds of which the file has all objects, also if it has none.
    """
    objects, assumptions = complete_objects(manifest.objects, has_classes=kinds.DEVICE_CLASS in listed)
    columns = ClusterColumns(vendors, reads_state=True)
    for quota in manifest.quotas.values():
        columns.apply_quota(quota)
    nodes = {get_text(item, "metadata", "name"): item for item in objects if item.get("kind") == "Node"}
    deleted = list_deleted_handshakes(nodes, vendors)
    left_out = sorted(deleted) if release.leaves_deleted_out else []
    for name, node in nodes.items():
        if name not in left_out:
            columns.apply_node(node)
    for pod in manifest.pods.values():
        columns.apply_pod(pod)
    pods = manifest.pods.values()
    own_schedulers = list_own_schedulers(pods, (item for item in manifest.others if item.get("kind") == "ConfigMap"))
    withheld = {
        name: list_shared_nodes(columns, pods, scheduler.shares_with)
        | {node: "" for node, entry in nodes.items() if scheduler.rejects(entry)}
        for name, scheduler in own_schedulers.items()
    }
    return SimulationCluster(
        columns,
        read_snapshot(objects),
        DescribedObjects(objects),
        release,
        assumptions,
        deleted,
        _has_hami(objects, columns, vendors),
        left_out,
        listed=listed,
        withheld=withheld,
        selectors={name: scheduler.selector for name, scheduler in own_schedulers.items()},
    )


def build_live_cluster(
    columns: ClusterColumns,
    objects: Sequence[Json],
    offered: Sequence[str],
    withheld: Mapping[str, Mapping[str, str]],
    *,
    has_nodes: bool,
) -> SimulationCluster:
    """Build the cluster as it is now, from the devices in memory and the objects that the API server gave.

    offered: nodes with devices, now or before. withheld: of `SimulationCluster`, as the states have it.
    has_nodes: whether the objects hold every node; one that is missing then has left the cluster.
    """
    completed, assumptions = complete_objects(objects)
    snapshot = read_snapshot(completed)
    others = () if has_nodes else tuple(name for name in offered if name not in snapshot.nodes)
    return SimulationCluster(
        columns,
        snapshot,
        DescribedObjects(completed),
        HamiRelease(),
        assumptions,
        {},
        has_hami=True,
        unfiltered=others,
        has_pods=False,
        withheld=withheld,
    )


def _has_hami(objects: Sequence[Json], columns: ClusterColumns, vendors: Vendors) -> bool:
    keys = {key for vendor in vendors for key in (vendor.node.register, vendor.node.handshake)}
    keys -= {vendor.node.register for vendor in vendors if vendor.node.form is Form.CAPACITY} | {""}
    marked = (
        key in keys or key.startswith(_HAMI_PREFIX)
        for item in objects
        if item.get("kind") in ("Node", "Pod")
        for key in get_object(item, "metadata", "annotations")
    )
    return bool(columns.node_names) or any(marked)


def find_unread_kinds(
    pod: Mapping[str, Any],
    objects: "DescribedObjects",
    listed: frozenset[str] = frozenset(),
    *,
    has_pods: bool = True,
) -> frozenset[str]:
    """Find the kinds that a verdict about the pod needs, that were not listed and of which no object is there.

    A file without pods describes empty nodes; its pods are not unread. Where the pods could not be read (has_pods),
    only rules about other pods make them unread: what they hold of CPU and memory counts as free.
    """
    needed: set[str] = set()
    if any(volume.get("persistentVolumeClaim") for volume in iterate_objects(pod, "spec", "volumes")):
        needed |= {kinds.VOLUME_CLAIM, kinds.VOLUME, *([kinds.STORAGE_CLASS] if _has_unbound_claim(objects) else [])}
    if next(iterate_objects(pod, "spec", "resourceClaims"), None) is not None:
        devices = () if _has_only_allocated_claims(pod, objects) else (kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)
        needed |= {kinds.RESOURCE_CLAIM, *devices}
    if _selects_namespaces(pod):
        needed.add(kinds.NAMESPACE)
    unread = needed - objects.kinds - listed
    return frozenset(unread | {kinds.POD} if not has_pods and _looks_at_pods(pod) else unread)


def _has_unbound_claim(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether a class decides about a claim: one that is bound has its volume."""
    claims = (item for item in objects if isinstance(item, Mapping) and item.get("kind") == kinds.VOLUME_CLAIM)
    return any(not get_text(claim, "spec", "volumeName") for claim in claims)


def _has_only_allocated_claims(pod: Mapping[str, Any], objects: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether the claims of the pod's namespace have their devices: each names the nodes of them."""
    namespace = get_text(pod, "metadata", "namespace")
    claims = [
        get_object(item, "status", "allocation")
        for item in objects
        if isinstance(item, Mapping)
        and item.get("kind") == "ResourceClaim"
        and get_text(item, "metadata", "namespace") == namespace
    ]
    return bool(claims) and all(claims)


def _looks_at_pods(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod has rules about other pods: affinity, spread, host ports."""
    affinity, spec = get_object(pod, "spec", "affinity"), get_object(pod, "spec")
    ports = (port for container in iterate_objects(spec, "containers") for port in iterate_objects(container, "ports"))
    return bool(
        get_object(affinity, "podAffinity")
        or get_object(affinity, "podAntiAffinity")
        or spec.get("topologySpreadConstraints")
        or any(port.get("hostPort") for port in ports)
    )


def _selects_namespaces(pod: Mapping[str, Any]) -> bool:
    affinity = get_object(pod, "spec", "affinity")
    terms = (
        term
        for kind in ("podAffinity", "podAntiAffinity")
        for term in iterate_objects(affinity, kind, "requiredDuringSchedulingIgnoredDuringExecution")
    )
    return any(get_object(term, "namespaceSelector") for term in terms)


def list_deleted_handshakes(nodes: Mapping[str, Mapping[str, Any]], vendors: Vendors) -> dict[str, tuple[str, str]]:
    """List the nodes with a handshake ``Deleted_…``: by name the annotation and its text."""
    deleted: dict[str, tuple[str, str]] = {}
    for name, node in nodes.items():
        annotations = get_object(node, "metadata", "annotations")
        for key in dict.fromkeys(vendor.node.handshake for vendor in vendors if vendor.node.handshake):
            value = annotations.get(key)
            if isinstance(value, str) and is_deleted(value):
                deleted.setdefault(name, (key, value))
    return deleted

"""Plain Kubernetes objects as a snapshot, and a snapshot with some of its objects changed.

An object with a malformed field is left out and named in `Snapshot.rejected`; it never stops the rest.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, Object, RejectedObject, quote, read_labels, read_mapping
from engine.snapshot.node_info import NodeInfo, build_node_info
from engine.snapshot.nodes import Node, read_node
from engine.snapshot.pods import Pod, has_ended, read_pod
from engine.snapshot.selectors import Labels
from engine.snapshot.snapshot import Key, Snapshot
from engine.snapshot.volumes import (
    VolumeAttachment,
    read_claim,
    read_csi_driver,
    read_csi_node,
    read_storage_capacity,
    read_storage_class,
    read_volume,
    read_volume_attachment,
)

ObjectKey = tuple[str, str, str]
"""Kind (`kinds`), namespace and name of an object."""
_Tables = dict[str, dict[Key, Any]]


def read_snapshot(objects: Iterable[Any], unread: Iterable[str] = (), *, limit: int = kinds.MAX_OBJECTS) -> Snapshot:
    """Build a snapshot from objects of any origin; lists of objects are flattened, of equal objects the last counts.

    unread: kinds (`kinds`) of which some or all objects could not be read. Raises `kinds.SnapshotError` only for input
    beyond the limit of objects.
    """
    return change_snapshot(EMPTY, objects, unread=unread, limit=limit)


def change_snapshot(
    snapshot: Snapshot,
    objects: Iterable[Any] = (),
    removed: Iterable[ObjectKey] = (),
    *,
    unread: Iterable[str] | None = None,
    limit: int = kinds.MAX_OBJECTS,
) -> Snapshot:
    """Return a snapshot with objects added or replaced and others removed; the given one stays as it is.

    Nodes whose pods are the same share their sums with the given snapshot.
    """
    change = _Change(snapshot)
    for key in removed:
        change.remove(key)
    for position, value in enumerate(kinds.flatten(objects, limit)):
        change.put(value, position)
    return change.build(snapshot.unread if unread is None else frozenset(unread))


def _read_namespace(namespace: Object) -> Labels:
    return read_labels(read_mapping(namespace, "metadata"), "labels", "metadata")


def _read_plain(value: Object) -> Object:
    return value


_READERS: Final[Mapping[str, Callable[[Object], Any]]] = {
    kinds.NODE: read_node,
    kinds.POD: read_pod,
    kinds.NAMESPACE: _read_namespace,
    kinds.VOLUME_CLAIM: read_claim,
    kinds.VOLUME: read_volume,
    kinds.STORAGE_CLASS: read_storage_class,
    kinds.CSI_NODE: read_csi_node,
    kinds.CSI_DRIVER: read_csi_driver,
    kinds.STORAGE_CAPACITY: read_storage_capacity,
    kinds.VOLUME_ATTACHMENT: read_volume_attachment,
}


class _Change:
    """Tables that are copied when they first change, and the nodes whose pods have changed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._before = snapshot
        self._tables: _Tables = {}
        self._rejected = dict(snapshot.rejected)
        self._changed_pods: dict[Key, None] = {}
        self._touched: set[str] = set()
        self._nominations_changed = False

    def put(self, value: Any, position: int) -> None:
        if not isinstance(value, dict):
            cause = f"entry {position} of the input is {quote(value)}, not an object"
            self._reject(RejectedObject("", "", str(position), "", cause))
            return
        kind, key = _identify(value)
        try:
            self._read(kind, key, value)
        except FieldError as error:
            self.remove((kind, *key))
            self._reject(RejectedObject(kind, *key, error.path, error.cause))

    def _read(self, kind: str, key: Key, value: Object) -> None:
        if not kind:
            raise FieldError("kind", "is missing")
        if not key[1]:
            raise FieldError("metadata.name", "is missing")
        if kind == kinds.POD and has_ended(value):
            self.remove((kind, *key))
            return
        record = _READERS.get(kind, _read_plain)(value)
        self._touch(kind, key, record)
        self._get_table(kind)[key] = record
        self._rejected.pop((kind, *key), None)

    def remove(self, key: ObjectKey) -> None:
        kind, namespace, name = key
        self._rejected.pop(key, None)
        if (namespace, name) in self._tables.get(kind, self._before.get_table(kind)):
            self._touch(kind, (namespace, name), None)
            del self._get_table(kind)[namespace, name]

    def _reject(self, rejected: RejectedObject) -> None:
        self._rejected[rejected.kind, rejected.namespace, rejected.name] = rejected

    def _get_table(self, kind: str) -> dict[Key, Any]:
        if kind not in self._tables:
            self._tables[kind] = dict(self._before.get_table(kind))
        return self._tables[kind]

    def _touch(self, kind: str, key: Key, after: Any) -> None:
        """Note which nodes a change of a pod concerns."""
        if kind == kinds.POD:
            self._changed_pods[key] = None
            for pod in (self._get_table(kind).get(key), after):
                if pod is not None:
                    self._touched.add(pod.node)
                    self._nominations_changed |= bool(pod.nominated_node)

    def build(self, unread: frozenset[str]) -> Snapshot:
        before = self._before
        tables = {**before.tables, **self._tables}
        nodes_changed, attached = kinds.NODE in self._tables, self._tables.get(kinds.VOLUME_ATTACHMENT)
        pods = tables.get(kinds.POD, {})
        return replace(
            before,
            tables=tables,
            nodes=self._build_nodes(tables) if self._touched or nodes_changed else before.nodes,
            nominated=_group_nominated(pods) if self._nominations_changed else before.nominated,
            attachments=before.attachments if attached is None else _group_attachments(attached),
            unread=unread,
            rejected=self._rejected,
        )

    def _build_nodes(self, tables: Mapping[str, Mapping[Key, Any]]) -> Mapping[str, NodeInfo]:
        nodes: Mapping[Key, Node] = tables.get(kinds.NODE, {})
        pods: Mapping[Key, Pod] = tables.get(kinds.POD, {})
        added = {name for _, name in nodes if name not in self._before.nodes}
        touched: dict[str, list[Pod]] = {name: [] for name in (*added, *self._touched)}
        for key in pods if added else self._list_concerned():
            pod = pods.get(key)
            if pod is not None and pod.node in touched:
                touched[pod.node].append(pod)
        return {name: self._build_node(node, touched.get(name)) for (_, name), node in nodes.items()}

    def _list_concerned(self) -> Iterable[Key]:
        """List the pods that were on a node whose pods have changed, and the changed ones, once each."""
        former = (
            pod.key for name in self._touched if name in self._before.nodes for pod in self._before.nodes[name].pods
        )
        return dict.fromkeys([*former, *self._changed_pods])

    def _build_node(self, node: Node, pods: list[Pod] | None) -> NodeInfo:
        if pods is not None:
            return build_node_info(node, pods)
        state = self._before.nodes[node.name]
        return state if state.node is node else state.with_node(node)


def _identify(value: Object) -> tuple[str, Key]:
    """Name an object as far as its metadata allow it."""
    version, kind, metadata = value.get("apiVersion"), value.get("kind"), value.get("metadata")
    identity = kinds.identify(version if isinstance(version, str) else "", kind) if isinstance(kind, str) else ""
    names = metadata if isinstance(metadata, dict) else {}
    namespace, name = (part if isinstance(part, str) else "" for part in (names.get("namespace"), names.get("name")))
    if identity in kinds.NAMESPACED:
        namespace = namespace or "default"
    return identity, (namespace, name)


def _group_nominated(pods: Mapping[Key, Pod]) -> Mapping[str, tuple[Pod, ...]]:
    nominated: dict[str, list[Pod]] = {}
    for pod in pods.values():
        if pod.nominated_node and not pod.node:
            nominated.setdefault(pod.nominated_node, []).append(pod)
    return {node: tuple(waiting) for node, waiting in nominated.items()}


def _group_attachments(attachments: Mapping[Key, VolumeAttachment]) -> Mapping[str, tuple[VolumeAttachment, ...]]:
    grouped: dict[str, list[VolumeAttachment]] = {}
    for attachment in attachments.values():
        grouped.setdefault(attachment.node, []).append(attachment)
    return {node: tuple(attached) for node, attached in grouped.items()}


EMPTY: Final = Snapshot({}, {}, {}, {}, frozenset(), {})
"""A snapshot of nothing."""

"""A cluster that a YAML file describes: it holds the objects and acts as the API server and the device plugin.

The file may be edited while the scheduler runs; the difference is applied. What was written into objects meanwhile
(annotations, locks, bindings) is kept until the file itself changes the same thing.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.fit.manifests import Manifest, PodKey
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE, DEVICES_TO_ALLOCATE, NODE_LOCK, PHASE_SUCCESS
from engine.hami.node_lock import parse_owner
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from scheduler.cluster.cluster_api import NamespacedName, Object, PodVersion, Watcher, get_annotation

log = logging.getLogger(__name__)

MAX_OFFERED: Final = 10_000
"""Pods kept that only kube-scheduler sent: they are not in the file, and hold no device."""


@dataclass(slots=True)
class _StoredObject:
    """One object: its manifest from the file or kube-scheduler, and what was written into it since."""

    manifest: Object
    version: int
    annotations: dict[str, str | None] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    node: str = ""
    phase: str = ""

    def to_object(self) -> dict[str, Any]:
        """Return the object as a reader of the API sees it."""
        metadata = dict(self.manifest["metadata"])
        merged = {**(metadata.get("annotations") or {}), **self.annotations}
        metadata["annotations"] = {key: value for key, value in merged.items() if value is not None}
        metadata["labels"] = {**(metadata.get("labels") or {}), **self.labels}
        metadata["resourceVersion"] = str(self.version)
        obj = {**self.manifest, "metadata": metadata}
        if self.node:
            obj["spec"] = {**(obj.get("spec") or {}), "nodeName": self.node}
            obj["status"] = {**(obj.get("status") or {}), "phase": self.phase}
        return obj


class SimulatedCluster:
    """Implements `ClusterApi`; notifies `watcher` of every change, its own writes included."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._version = 0
        self._file = Manifest()
        self._nodes: dict[str, _StoredObject] = {}
        self._pods: dict[PodKey, _StoredObject] = {}
        self._offered: OrderedDict[PodKey, None] = OrderedDict()
        self._logged_kinds: set[str] = set()

    def count_locked_nodes(self) -> int:
        return sum(get_annotation(node.to_object(), NODE_LOCK) is not None for node in self._nodes.values())

    def apply(self, manifest: Manifest) -> None:
        """Apply the file as it is now, and notify the watcher of the difference."""
        before, self._file = self._file, manifest
        self._log_ignored(manifest)
        for namespace, name in before.quotas.keys() - manifest.quotas.keys():
            self._watcher.on_quota_deleted(namespace, name)
        for key, quota in manifest.quotas.items():
            if before.quotas.get(key) != quota:
                self._watcher.on_quota(quota)
        for name in before.nodes.keys() - manifest.nodes.keys():
            del self._nodes[name]
            self._watcher.on_node_deleted(name)
        for name, node in manifest.nodes.items():
            if before.nodes.get(name) != node:
                self._apply_node(name, before.nodes.get(name), node)
        for key in before.pods.keys() - manifest.pods.keys():
            self._forget_pod(key)
        for key, pod in manifest.pods.items():
            if before.pods.get(key) != pod:
                self._apply_pod(key, pod)

    def _log_ignored(self, manifest: Manifest) -> None:
        for kind in manifest.ignored.keys() - self._logged_kinds:
            log.info("the cluster file has %d objects of kind %s, which are not used", manifest.ignored[kind], kind)
            self._logged_kinds.add(kind)

    def _apply_node(self, name: str, before: Object | None, node: Object) -> None:
        held = self._nodes.get(name)
        annotations = {}
        if held and before:
            values = ((key, get_annotation(before, key), get_annotation(node, key)) for key in held.annotations)
            annotations = {key: held.annotations[key] for key, old, new in values if old == new}
        self._nodes[name] = _StoredObject(node, self._take_version(), annotations)
        self._watcher.on_node(self._nodes[name].to_object())

    def _apply_pod(self, key: PodKey, pod: Object) -> None:
        self._offered.pop(key, None)
        self._replace_pod(key, pod)
        self._watcher.on_pod(self._pods[key].to_object())

    def _replace_pod(self, key: PodKey, pod: Object) -> None:
        old = self._pods.get(key)
        # The old pod is removed first: an observation of an unplaced pod does not free what it held before.
        if old:
            self._watcher.on_pod_deleted(_get_uid(old.manifest))
        self._pods[key] = _StoredObject(pod, self._take_version())

    def _forget_pod(self, key: PodKey) -> None:
        self._offered.pop(key, None)
        held = self._pods.pop(key, None)
        if held:
            self._watcher.on_pod_deleted(_get_uid(held.manifest))

    def _take_version(self) -> int:
        self._version += 1
        return self._version

    # ClusterApi

    def find_problem(self) -> str:
        return ""

    def get_term(self) -> int:
        return 0

    def get_node_seen(self, name: str) -> Object | None:
        held = self._nodes.get(name)
        return held.to_object() if held else None

    def get_pod_seen(self, namespace: str, name: str) -> Object | None:
        held = self._pods.get((namespace, name))
        return held.to_object() if held else None

    def note_offered(self, pod: Object) -> None:
        metadata = pod["metadata"]
        key = (metadata["namespace"], metadata["name"])
        held = self._pods.get(key)
        # A retry of a pod that is known: what was written into it is kept.
        if held and _get_uid(held.manifest) == metadata["uid"]:
            return
        # A pod of the file is the cluster's word: under another UID a caller would free what it holds. The write of the
        # decision meets the conflict, as at an API server.
        if key in self._file.pods:
            return
        self._replace_pod(key, pod)
        self._offered[key] = None
        if len(self._offered) > MAX_OFFERED:
            self._forget_pod(next(iter(self._offered)))

    async def get_node(self, name: str) -> Object:
        return self._get_stored_node(name).to_object()

    async def get_pod(self, namespace: str, name: str) -> Object:
        return self._get_stored_pod(namespace, name).to_object()

    def _get_stored_node(self, name: str) -> _StoredObject:
        if name not in self._nodes:
            raise build_missing_error("nodes", name)
        return self._nodes[name]

    def _get_stored_pod(self, namespace: str, name: str) -> _StoredObject:
        if (namespace, name) not in self._pods:
            raise build_missing_error("pods", name)
        return self._pods[namespace, name]

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        held = self._get_stored_node(name)
        # The API server's own condition and words, so that a lock meets the same conflicts here.
        if resource_version != str(held.version):
            raise KubeApiError(409, f'Operation cannot be fulfilled on nodes "{name}": the object has been modified')
        held.annotations.update(annotations)
        held.version = self._take_version()
        self._watcher.on_node(held.to_object())

    async def patch_pod(
        self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> Object:
        held, prefix = self._get_stored_pod(*pod.key), f'Operation cannot be fulfilled on pods "{pod.key.name}"'
        if pod.uid != _get_uid(held.manifest):
            raise KubeApiError(409, _explain_other_uid(prefix, pod.uid, held))
        if pod.resource_version not in ("", str(held.version)):
            raise KubeApiError(409, f"{prefix}: the object has been modified")
        held.annotations.update(annotations)
        held.labels.update(labels or {})
        held.version = self._take_version()
        self._watcher.on_pod(held.to_object())
        # It holds devices now, so it must not be forgotten as the oldest of the offered.
        if get_annotation(held.to_object(), ASSIGNED_NODE):
            self._offered.pop(pod.key, None)
        return held.to_object()

    async def bind(self, pod: PodVersion, node: str) -> None:
        held, name = self._get_stored_pod(*pod.key), pod.key.name
        bound_to = (held.manifest.get("spec") or {}).get("nodeName")
        prefix = f'Operation cannot be fulfilled on pods/binding "{name}"'
        if pod.uid and pod.uid != _get_uid(held.manifest):
            raise KubeApiError(409, _explain_other_uid(prefix, pod.uid, held))
        if held.node or bound_to:
            raise KubeApiError(409, f'{prefix}: pod {name} is already assigned to node "{held.node or bound_to}"')
        if pod.resource_version not in ("", str(held.version)):
            raise KubeApiError(409, f"{prefix}: the object has been modified")
        # There is no kubelet here, so a bound pod runs at once.
        held.node, held.phase = node, "Running"
        await self._allocate(held, pod.key, node)

    async def _allocate(self, held: _StoredObject, key: NamespacedName, node: str) -> None:
        """Allocate as the device plugin does: mark the devices, and release the node's lock."""
        waiting = get_annotation(held.to_object(), DEVICES_TO_ALLOCATE) or ""
        # HAMi's device plugin takes out the devices and leaves the separators.
        done = {DEVICES_TO_ALLOCATE: ";" * waiting.count(";"), BIND_PHASE: PHASE_SUCCESS}
        await self.patch_pod(PodVersion(key, _get_uid(held.manifest), ""), done)
        lock = get_annotation(self._get_stored_node(node).to_object(), NODE_LOCK)
        # Its own lock only: another pod may have taken over an expired one.
        if lock is not None and parse_owner(lock) == key:
            await self.patch_node(node, {NODE_LOCK: None}, str(self._get_stored_node(node).version))


def _explain_other_uid(prefix: str, uid: str, held: _StoredObject) -> str:
    return f"{prefix}: Precondition failed: UID in precondition: {uid}, UID in object meta: {_get_uid(held.manifest)}"


def _get_uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])

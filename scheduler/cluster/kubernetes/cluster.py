"""Implements `ClusterApi` on an API server: what is known comes from watches, what is written goes there at once.

The answer to a write is the object after it. It is absorbed at once, so that the watch's echo of it changes nothing.
"""

import asyncio
import logging
from collections.abc import Mapping
from random import Random
from typing import Any, Final

import orjson

from engine.fit.devices.pod_usage import has_ended
from engine.hami.annotations import ASSIGNED_NODE, NODE_LOCK
from runtime.backoff import draw_backoff_seconds
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.leadership import Leadership
from runtime.kubernetes.reflector import Reflector, Selection, WatchTimeouts
from runtime.kubernetes.resources import NODES, PODS, QUOTAS, Key
from runtime.kubernetes.store import ObjectRef
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Object, PodVersion, Watcher, get_annotation, get_bound_node
from scheduler.cluster.kubernetes.slim import select_relevant, slim_node, slim_pod
from schemas.json_types import Json

log = logging.getLogger(__name__)

_NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""A pod that ends leaves the selection, which the watch delivers as a deletion."""

_PATIENCE: Final = WatchTimeouts()


def _pack(obj: Json) -> bytes:
    """Pack the object as JSON. orjson returns buffers larger than their content, so a copy takes a fifth of the
    memory."""
    return bytes(memoryview(orjson.dumps(obj)))


class _Nodes:
    """The nodes as JSON text by name."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.objects: dict[str, bytes] = {}
        self.locked: set[str] = set()

    def on_changed(self, obj: Json) -> None:
        node, before = slim_node(obj), self.objects.get(obj["metadata"]["name"])
        self.objects[node["metadata"]["name"]] = _pack(node)
        (self.locked.discard if get_annotation(node, NODE_LOCK) is None else self.locked.add)(node["metadata"]["name"])
        # Locks and heartbeats change nodes all the time: only what a decision can depend on is passed on.
        if before is None or select_relevant(orjson.loads(before)) != select_relevant(node):
            self._watcher.on_node(node)

    def on_deleted(self, ref: ObjectRef) -> None:
        del self.objects[ref.key.name]
        self.locked.discard(ref.key.name)
        self._watcher.on_node_deleted(ref.key.name)


class _Pods:
    """The pods that have not ended, as JSON text."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.objects: dict[Key, bytes] = {}

    def on_changed(self, obj: Json) -> None:
        pod = slim_pod(obj)
        self.objects[Key(pod["metadata"]["namespace"], pod["metadata"]["name"])] = _pack(pod)
        self._watcher.on_pod(pod)

    def on_deleted(self, ref: ObjectRef) -> None:
        del self.objects[ref.key]
        self._watcher.on_pod_deleted(ref.uid)


class _Quotas:
    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def on_changed(self, obj: Json) -> None:
        self._watcher.on_quota(obj)

    def on_deleted(self, ref: ObjectRef) -> None:
        self._watcher.on_quota_deleted(*ref.key)


class KubernetesCluster:
    """`run` keeps it up to date. `election` None: this scheduler is the only one."""

    def __init__(
        self,
        client: Client,
        watcher: Watcher,
        claims: Claims,
        election: Leadership | None = None,
        *,
        node_labels: str = "",
        patience: WatchTimeouts = _PATIENCE,
    ) -> None:
        self._client, self._watcher, self._claims, self._election = client, watcher, claims, election
        self._nodes, self._pods = _Nodes(watcher), _Pods(watcher)
        self._node_watch = Reflector(client, Selection(NODES, labels=node_labels), self._nodes, patience)
        self._pod_watch = Reflector(client, Selection(PODS, fields=_NOT_ENDED), self._pods, patience)
        self._quota_watch = Reflector(client, Selection(QUOTAS), _Quotas(watcher), patience)
        self.watches = (self._node_watch, self._pod_watch, self._quota_watch)
        self._read_term = 0

    def count_locked_nodes(self) -> int:
        return len(self._nodes.locked)

    def find_quota_problem(self) -> str:
        """Find why quotas may be outdated; empty where they are current, also while another scheduler leads."""
        return self._quota_watch.problem

    async def run(self) -> None:
        """Follow the cluster, and lead where the lease allows it, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for watch in self.watches:
                tasks.create_task(watch.run())
            if self._election:
                tasks.create_task(self._election.run())
                tasks.create_task(self._relist_when_leading(self._election))

    async def _relist_when_leading(self, election: Leadership) -> None:
        """List everything again when a term begins: the last leader may have written what our watches have not brought
        yet."""
        waits = draw_backoff_seconds(Random())  # noqa: S311 - no secret
        while True:
            await election.term_began.wait()
            election.term_began.clear()
            term = election.term
            await asyncio.gather(*(watch.wait_until_synced() for watch in self.watches))
            # Until this term is read, or another has begun: then `term_began` is set again.
            while self._read_term != term == election.term:
                try:
                    await asyncio.gather(*(watch.relist() for watch in self.watches))
                except KubeApiError as error:
                    log.warning("the cluster can't be read (%s); nothing is answered before it is", error)
                    await asyncio.sleep(next(waits))
                else:
                    self._begin_term(term)

    def _begin_term(self, term: int) -> None:
        """Let annotations count again that were void in an earlier term: another leader may have written them since."""
        if voided := self._claims.reset():
            for pod in map(orjson.loads, self._pods.objects.values()):
                if pod["metadata"]["uid"] in voided:
                    self._watcher.on_pod(pod)
        self._read_term = term

    async def close(self) -> None:
        """Give the lease back; `run` has ended."""
        if self._election:
            await self._election.resign()
        await self._client.close()

    def find_problem(self) -> str:
        if self._election and self._election.problem:
            return f"this scheduler does not lead: {self._election.problem}"
        lacking = next((watch.problem for watch in self.watches if watch.problem), "")
        if not lacking and self._election and self._read_term != self._election.term:
            lacking = "the new leader is reading it again"
        return f"the cluster is not known as it is now: {lacking}" if lacking else ""

    def get_term(self) -> int:
        return self._election.term if self._election else 0

    # ClusterApi

    def get_node_seen(self, name: str) -> Object | None:
        packed = self._nodes.objects.get(name)
        return orjson.loads(packed) if packed else None

    def get_pod_seen(self, namespace: str, name: str) -> Object | None:
        packed = self._pods.objects.get(Key(namespace, name))
        return orjson.loads(packed) if packed else None

    def note_offered(self, pod: Object) -> None:
        pass

    async def get_node(self, name: str) -> Object:
        node = await self._client.get(NODES.build_object_path(Key("", name)))
        self._absorb_node(node)
        return node

    async def get_pod(self, namespace: str, name: str) -> Object:
        pod = await self._client.get(PODS.build_object_path(Key(namespace, name)))
        self._absorb_pod(pod)
        return pod

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        # In a merge patch the version is a condition: 409 where the node has changed since.
        change = {"metadata": {"resourceVersion": resource_version, "annotations": annotations}}
        self._absorb_node(await self._client.patch(NODES.build_object_path(Key("", name)), change))

    async def patch_pod(
        self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> Object:
        bound = get_bound_node(self.get_pod_seen(*pod.key) or {})
        # The containers of a bound pod may use their devices already: no later filter call may assign others.
        if bound and ASSIGNED_NODE in annotations:
            raise KubeApiError(409, f'pod {pod.key.name} is already assigned to node "{bound}"')
        metadata = _to_conditions(pod) | {"annotations": annotations} | ({"labels": labels} if labels else {})
        patched = await self._client.patch(PODS.build_object_path(Key(*pod.key)), {"metadata": metadata})
        self._absorb_pod(patched)
        return patched

    async def bind(self, pod: PodVersion, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.key.name, "namespace": pod.key.namespace} | _to_conditions(pod),
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.create(PODS.build_object_path(Key(*pod.key), "binding"), binding)

    def _absorb_node(self, node: Json) -> None:
        # A node outside of our selection stays unknown.
        if node["metadata"]["name"] in self._nodes.objects:
            self._node_watch.apply_own_write(node)

    def _absorb_pod(self, pod: Json) -> None:
        # The watch leaves ended pods out, so it would never remove this one.
        if not has_ended(pod):
            self._pod_watch.apply_own_write(pod)


def _to_conditions(pod: PodVersion) -> dict[str, Any]:
    """Return the fields that refuse a write (409) where another pod has the name, or the pod has changed since.

    Without the version, a write that is late would overwrite what another leader, or a later call, has decided.
    """
    return {"uid": pod.uid} | ({"resourceVersion": pod.resource_version} if pod.resource_version else {})

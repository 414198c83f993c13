"""Watches of the kinds that make pods or hold them back, where the cluster has them and the account may list them."""

import logging
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

from engine.cases.workload_words import DEPLOYMENT, HOLDERS, WORDS
from engine.snapshot import kinds
from engine.snapshot.needed_kinds import (
    API_GROUPS,
    GroupVersions,
    build_collection_path,
    list_devices,
    list_queues,
    parse_versions,
)
from ingest.readers.kube.reader import ObjectKind
from ingest.workloads.object_store import WorkloadObjects
from ingest.workloads.pod_waits import PodWaitObserver
from ingest.workloads.waiting import WaitObserver
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.reflector import ChangeHandler, Reflector, Selection, WatchTimeouts
from runtime.kubernetes.resources import Resource
from runtime.kubernetes.store import ObjectRef
from schemas.events import Event
from schemas.json_types import Json

log = logging.getLogger(__name__)

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NAMESPACES: Final = "/namespaces/"
_DEVICES: Final = "resource.k8s.io/v1"
_JUDGED: Final = {
    kinds.VOLUME_CLAIM: "v1", kinds.STORAGE_CLASS: "storage.k8s.io/v1", kinds.DEVICE_CLASS: _DEVICES,
}  # fmt: skip
"""Kinds that the judge of refused pods watches too, with their versions."""


class WorkloadFeed:
    """Takes the changes of one kind of objects."""

    def __init__(self, objects: WorkloadObjects, kind: str, version: str) -> None:
        """Take objects of ``kind`` (``engine.snapshot.kinds``) for the store."""
        self._objects, self._kind, self._version = objects, kind, version

    def on_changed(self, resource: Json) -> None:
        """Take the present state of an object."""
        try:
            self._put(resource)
        except Exception:
            # A defect that one object reveals must not end the watch of all others.
            log.exception("a defect: a %s is not read: %.300s", self._kind, resource.get("metadata"))

    def _put(self, resource: Json) -> None:
        self._objects.put(self._kind, self._version, resource)

    def on_deleted(self, ref: ObjectRef) -> None:
        """Take the deletion of an object."""
        self._objects.remove(self._kind, ref.key.namespace, ref.key.name)


class PodFeed(WorkloadFeed):
    """Takes the pods that the reader watches, for their owners."""

    def __init__(self, objects: WorkloadObjects) -> None:
        """Take pods for the store."""
        super().__init__(objects, "Pod", "v1")

    def _put(self, resource: Json) -> None:
        self._objects.put_pod(resource)

    def on_deleted(self, ref: ObjectRef) -> None:
        """Take the deletion of a pod."""
        self._objects.remove_pod(ref.key.namespace, ref.key.name)


class EventFeed(WorkloadFeed):
    """Takes the events that the reader watches."""

    def __init__(self, objects: WorkloadObjects) -> None:
        """Take events for the store."""
        super().__init__(objects, "Event.events.k8s.io", "events.k8s.io/v1")

    def _put(self, resource: Json) -> None:
        self._objects.put_event(resource)

    def on_deleted(self, ref: ObjectRef) -> None:
        """Ignore the end of an event: Kubernetes deletes it after an hour, whatever it is about."""


class WorkloadWatches:
    """Follows workloads, queues, groups and claims, and observes pods that wait and what waits without pods."""

    def __init__(self, waiting: WaitObserver, pods: PodWaitObserver) -> None:
        """Start without watches."""
        self._waiting, self._pods, self._objects = waiting, pods, waiting.objects
        self._reflectors: list[Reflector] = []
        self.feeds: dict[ObjectKind, ChangeHandler] = {
            "pod": PodFeed(self._objects), "event": EventFeed(self._objects),
            "claim": WorkloadFeed(self._objects, kinds.RESOURCE_CLAIM, _DEVICES),
        }  # fmt: skip
        """Takers of what the reader of events watches anyway, by its names of the kinds."""
        self.judged_feeds: dict[str, ChangeHandler] = {
            kind: WorkloadFeed(self._objects, kind, version) for kind, version in _JUDGED.items()
        }
        """Takers of what is watched for the judge, by kind."""

    async def build_reflectors(self, client: Client, namespace: str, timeouts: WatchTimeouts) -> list[Reflector]:
        """Build a watch for each kind that the cluster has and the account may list."""
        forbidden, watched = [], set()
        for kind, path in _iterate_paths(await _read_versions(client), namespace):
            resource = _to_resource(path)
            status = await _probe(client, path)
            if status == _FORBIDDEN:
                forbidden.append(f"{resource.plural}.{kind.partition('.')[2]}")
            elif status != _NOT_FOUND:
                scope = namespace if _NAMESPACES in path else ""
                feed = WorkloadFeed(self._waiting.objects, kind, resource.root.removeprefix("/apis/"))
                self._reflectors.append(Reflector(client, Selection(resource, scope), feed, timeouts))
                watched.add(kind)
        self.note_watched(watched)
        if forbidden:
            log.warning(
                "workloads without pods are listed without what these kinds say; allow list and watch of %s",
                ", ".join(sorted(forbidden)),
            )
        return self._reflectors

    def note_watched(self, watched: Collection[str]) -> None:
        """Note kinds that are watched: an object of them that is absent does not exist."""
        self._objects.listed |= frozenset(watched)
        self._objects.unread -= frozenset(watched)

    def observe(self, moment: datetime, now: float) -> list[Event]:
        """Observe what waits without pods, and pods that wait for something else than before."""
        return [*self._waiting.observe(moment, now), *self._pods.observe(moment, now)]

    def describe(self, event: Event) -> Event:
        """Add what holds a waiting pod to an observation of it."""
        return self._pods.describe(event)


async def _read_versions(client: Client) -> GroupVersions:
    try:
        return parse_versions(await client.get(API_GROUPS))
    except KubeApiError as error:
        log.warning("workloads without pods are not listed, as the API groups can't be read: %s", error)
        return GroupVersions({})


def _iterate_paths(versions: GroupVersions, namespace: str) -> Iterator[tuple[str, str]]:
    """Iterate over the kinds that the cluster has, with the paths of their collections."""
    for kind in dict.fromkeys(kind for listed in WORDS.values() for kind in listed):
        name, _, group = kind.partition(".")
        version = versions.find_preferred(group)
        if version and kind not in (*HOLDERS, DEPLOYMENT):
            yield kind, build_collection_path(f"{group}/{version}", name, namespace)
    for entry in list_queues(namespace, versions):
        yield entry.kind, entry.path
    for entry in list_devices(versions):
        if entry.kind == kinds.CLAIM_TEMPLATE:
            yield entry.kind, entry.path


def _to_resource(path: str) -> Resource:
    root, plural = path.rpartition("/")[::2]
    return Resource(root.partition(_NAMESPACES)[0], plural)


async def _probe(client: Client, path: str) -> int:
    """Probe whether a kind can be listed, and return the status of the answer; 0 where there is none."""
    try:
        await client.get_page(path, limit=1)
    except KubeApiError as error:
        # An API server that is down does not prove that the kind is missing.
        return error.status
    return 0

"""Reads a pod and what it names from the API server, as facts for a diagnosis."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from api.objects.object_api import Objects
from engine.diagnosis import objects
from engine.diagnosis.facts import (
    Cause,
    Claim,
    Evidence,
    HeldLock,
    NodeFacts,
    ObservedPod,
    OwnerProblem,
    Quota,
    Unknown,
)
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from runtime.kubernetes.object_fields import Fields, entries, text
from runtime.kubernetes.resources import EVENTS, NODES, PODS, QUOTAS, Key, Resource

T = TypeVar("T")

CLAIMS: Final = Resource("/api/v1", "persistentvolumeclaims")
CLASSES: Final = Resource("/apis/storage.k8s.io/v1", "storageclasses", is_namespaced=False)
MAX_NODES: Final = 500
MAX_EVENTS: Final = 500
MAX_SHOWN_EVENTS: Final = 5
MAX_CLAIMS: Final = 20


@dataclass(slots=True)
class ObjectFacts:
    """What the API server says now; what it does not say is None and in ``unknown``."""

    pod: ObservedPod | None = None
    claims: Sequence[Claim] | None = None
    quotas: Sequence[Quota] | None = None
    events: Sequence[Evidence] | None = None
    owner_problem: OwnerProblem | None = None
    unknown: list[Unknown] = field(default_factory=list)


async def read_circumstances(api: Objects, namespace: str, name: str, now: datetime) -> ObjectFacts:
    """The pod with what it names, its events, and its namespace's quotas."""
    reading = _Reading(api, namespace, name, now, ObjectFacts())
    await asyncio.gather(reading.pod_and_claims(), reading.quotas())
    return reading.found


async def read_nodes(api: Objects, now: datetime) -> tuple[list[NodeFacts], list[Unknown]]:
    """The first ``MAX_NODES`` nodes of the cluster, by name. Raises ``KubeApiError``."""
    path = NODES.collection()
    listed = await api.page(path, limit=MAX_NODES)
    named = [found for found in entries(listed, "items") if text(found, "metadata", "name")]
    nodes = [objects.node_state(found, _path(path, found), now) for found in named]
    if not text(listed, "metadata", "continue"):
        return nodes, []
    return nodes, [Unknown("nodes", "not-read", f"the first {MAX_NODES} nodes were read")]


async def existing_nodes(api: Objects, names: Collection[str]) -> list[str]:
    """Those of the names that are nodes of the cluster. Raises ``KubeApiError``."""
    # One by one: few are asked about, and of a large cluster a list is megabytes.
    listed = await asyncio.gather(*(_listed_node(api, name) for name in names))
    found = {text(entry, "metadata", "name") for page in listed for entry in entries(page, "items")}
    return [name for name in names if name in found]


async def read_lock(api: Objects, node: str, now: datetime) -> HeldLock | None:
    """The lock of a node as it is now; None where it has none. Raises ``KubeApiError``."""
    path, listed = NODES.collection(), await _listed_node(api, node)
    found = [objects.node_state(entry, _path(path, entry), now) for entry in entries(listed, "items")]
    return found[0].lock if found else None


async def _listed_node(api: Objects, node: str) -> Fields:
    # A list, for which the API has the right (deploy/kustomize/base/rights.yaml).
    return await api.page(NODES.collection(), limit=1, fieldSelector=f"metadata.name={node}")


@dataclass(slots=True)
class _Reading:
    api: Objects
    namespace: str
    name: str
    now: datetime
    found: ObjectFacts

    async def pod_and_claims(self) -> None:
        path = PODS.item(Key(self.namespace, self.name))
        try:
            pod = await self.api.get(path)
        except KubeApiError as error:
            if error.is_missing:
                source = Evidence("pod", path, self.now, words=str(error))
                self.found.pod = ObservedPod(source, is_gone=True)
                await self._events_of_owner()
            else:
                self.found.unknown += [unknown_of(subject, error) for subject in ("pod", "claims", "events")]
            return
        self.found.pod = objects.pod_state(pod, path, self.now)
        await asyncio.gather(self._claims(pod), self._events())

    async def _claims(self, pod: Fields) -> None:
        names = objects.claim_names(pod)[:MAX_CLAIMS]
        self.found.claims = await self._known("claims", lambda: asyncio.gather(*map(self._claim, names)))

    async def _claim(self, name: str) -> Claim:
        path = CLAIMS.item(Key(self.namespace, name))
        try:
            found = await self.api.get(path)
        except KubeApiError as error:
            if not error.is_missing:
                raise
            return objects.claim(name, path, None, None, self.now)
        class_name = text(found, "spec", "storageClassName")
        is_pending = text(found, "status", "phase") == "Pending"
        storage_class = await self._storage_class(class_name) if class_name and is_pending else None
        return objects.claim(name, path, found, storage_class, self.now)

    async def _storage_class(self, name: str) -> Fields | None:
        try:
            return await self.api.get(CLASSES.item(Key("", name)))
        except KubeApiError:
            # Then it is not known whether the claim waits for its pod, and the claim is no obstacle.
            return None

    async def quotas(self) -> None:
        path = QUOTAS.collection(self.namespace)
        listed = await self._known("quotas", lambda: self.api.page(path))
        self.found.quotas = _each(listed, lambda found: objects.quota(found, path, self.now))

    async def _events(self) -> None:
        path = EVENTS.collection(self.namespace)
        selector = f"regarding.kind=Pod,regarding.name={self.name}"
        listed = await self._known("events", lambda: self.api.page(path, limit=MAX_EVENTS, fieldSelector=selector))
        pod = self.found.pod
        if listed is None or pod is None:
            return
        # Of an earlier pod of this name there may still be events.
        own = [entry for entry in entries(listed, "items") if text(entry, "regarding", "uid") in ("", pod.uid)]
        shown = sorted((objects.event(entry, path) for entry in own), key=_latest_first)
        self.found.events = shown[:MAX_SHOWN_EVENTS]
        problems = [problem for entry in own if (problem := objects.problem_of(entry))]
        self.found.pod = pod._replace(problems=problems)

    async def _events_of_owner(self) -> None:
        path = EVENTS.collection(self.namespace)
        listed = await self._known("owner", lambda: self.api.page(path, limit=MAX_EVENTS, fieldSelector="type=Warning"))
        self.found.owner_problem = objects.owner_problem(entries(listed, "items"), self.name, path)

    async def _known(self, subject: str, read: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await read()
        except KubeApiError as error:
            self.found.unknown.append(unknown_of(subject, error))
            return None


def unknown_of(subject: str, error: KubeApiError) -> Unknown:
    """That the API server did not let ``subject`` be known."""
    cause: Cause = "api-server-down" if error.status == NO_ANSWER or error.status >= 500 else "not-allowed"
    return Unknown(subject, cause, str(error))


def _each(listed: Any, fact: Callable[[Fields], T]) -> list[T] | None:
    return None if listed is None else [fact(found) for found in entries(listed, "items")]


def _path(collection: str, found: Fields) -> str:
    return f"{collection}/{text(found, 'metadata', 'name')}"


def _latest_first(event: Evidence) -> float:
    return -event.at.timestamp() if event.at else 0.0

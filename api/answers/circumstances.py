"""Facts for a diagnosis from the API server: a pod, and the claims, quotas, events and nodes that it names."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from api.answers.object_api import Objects
from engine.diagnosis import objects
from engine.diagnosis.facts import (
    Cause,
    Claim,
    Evidence,
    HeldLock,
    NodeFacts,
    OwnerProblem,
    PodOnCluster,
    Quota,
    Unknown,
)
from engine.snapshot.case_objects import list_claim_names
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects
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
    """Facts that the API server has now; a fact that it does not give is None, with a reason in ``unknown``."""

    pod: PodOnCluster | None = None
    claims: Sequence[Claim] | None = None
    quotas: Sequence[Quota] | None = None
    events: Sequence[Evidence] | None = None
    owner_problem: OwnerProblem | None = None
    unknown: list[Unknown] = field(default_factory=list)


async def read_circumstances(api: Objects, namespace: str, name: str, now: datetime) -> ObjectFacts:
    """Read the pod with its claims and events, and its namespace's quotas."""
    reading = _Reading(api, namespace, name, now, ObjectFacts())
    await asyncio.gather(reading.read_pod_and_claims(), reading.read_quotas())
    return reading.facts


async def read_nodes(api: Objects, now: datetime) -> tuple[list[NodeFacts], list[Unknown]]:
    """Read the first ``MAX_NODES`` nodes of the cluster, by name. Raises ``KubeApiError``."""
    path = NODES.build_collection_path()
    page = await api.read_page(path, limit=MAX_NODES)
    named = [node for node in iterate_objects(page, "items") if get_text(node, "metadata", "name")]
    nodes = [objects.to_node_facts(node, _join_path(path, node), now) for node in named]
    if not get_text(page, "metadata", "continue"):
        return nodes, []
    return nodes, [Unknown("nodes", "not-read", f"the first {MAX_NODES} nodes were read")]


async def filter_existing_nodes(api: Objects, names: Collection[str]) -> list[str]:
    """Filter the names of nodes that the cluster has. Raises ``KubeApiError``."""
    # One by one: the names are few, and the list of a large cluster's nodes is megabytes.
    pages = await asyncio.gather(*(_list_node(api, name) for name in names))
    existing = {get_text(entry, "metadata", "name") for page in pages for entry in iterate_objects(page, "items")}
    return [name for name in names if name in existing]


async def read_lock(api: Objects, node: str, now: datetime) -> HeldLock | None:
    """Read the lock that a node has now; None without one. Raises ``KubeApiError``."""
    path, page = NODES.build_collection_path(), await _list_node(api, node)
    nodes = [objects.to_node_facts(entry, _join_path(path, entry), now) for entry in iterate_objects(page, "items")]
    return nodes[0].lock if nodes else None


async def _list_node(api: Objects, node: str) -> Fields:
    # A list, because the API has the right to list nodes (deploy/kustomize/base/rights.yaml).
    return await api.read_page(NODES.build_collection_path(), limit=1, fieldSelector=f"metadata.name={node}")


@dataclass(slots=True)
class _Reading:
    api: Objects
    namespace: str
    name: str
    now: datetime
    facts: ObjectFacts

    async def read_pod_and_claims(self) -> None:
        path = PODS.build_object_path(Key(self.namespace, self.name))
        try:
            pod = await self.api.get(path)
        except KubeApiError as error:
            if error.is_missing:
                source = Evidence("pod", path, self.now, words=str(error))
                self.facts.pod = PodOnCluster(source, is_gone=True)
                await self._read_owner_events()
            else:
                self.facts.unknown += [to_unknown(subject, error) for subject in ("pod", "claims", "events")]
            return
        self.facts.pod = objects.to_observed_pod(pod, path, self.now)
        await asyncio.gather(self._read_claims(pod), self._read_events())

    async def _read_claims(self, pod: Fields) -> None:
        names = list_claim_names(pod)[:MAX_CLAIMS]
        self.facts.claims = await self._read_or_note("claims", lambda: asyncio.gather(*map(self._read_claim, names)))

    async def _read_claim(self, name: str) -> Claim:
        path = CLAIMS.build_object_path(Key(self.namespace, name))
        try:
            facts = await self.api.get(path)
        except KubeApiError as error:
            if not error.is_missing:
                raise
            return objects.to_claim(name, path, None, None, self.now)
        class_name = get_text(facts, "spec", "storageClassName")
        is_pending = get_text(facts, "status", "phase") == "Pending"
        storage_class = await self._read_storage_class(class_name) if class_name and is_pending else None
        return objects.to_claim(name, path, facts, storage_class, self.now)

    async def _read_storage_class(self, name: str) -> Fields | None:
        try:
            return await self.api.get(CLASSES.build_object_path(Key("", name)))
        except KubeApiError:
            # Without it, nobody knows whether the claim waits for its pod, so the claim is no obstacle.
            return None

    async def read_quotas(self) -> None:
        path = QUOTAS.build_collection_path(self.namespace)
        listed = await self._read_or_note("quotas", lambda: self.api.read_page(path))
        self.facts.quotas = _map_entries(listed, lambda facts: objects.to_quota(facts, path, self.now))

    async def _read_events(self) -> None:
        path = EVENTS.build_collection_path(self.namespace)
        selector = f"regarding.kind=Pod,regarding.name={self.name}"
        listed = await self._read_or_note(
            "events", lambda: self.api.read_page(path, limit=MAX_EVENTS, fieldSelector=selector)
        )
        pod = self.facts.pod
        if listed is None or pod is None:
            return
        # There may still be events of an earlier pod of this name.
        entries_of_pod = [
            entry for entry in iterate_objects(listed, "items") if get_text(entry, "regarding", "uid") in ("", pod.uid)
        ]
        evidence = sorted((objects.to_event_evidence(entry, path) for entry in entries_of_pod), key=_rank_latest_first)
        self.facts.events = evidence[:MAX_SHOWN_EVENTS]
        problems = [problem for entry in entries_of_pod if (problem := objects.to_problem(entry))]
        self.facts.pod = pod._replace(problems=problems)

    async def _read_owner_events(self) -> None:
        path = EVENTS.build_collection_path(self.namespace)
        listed = await self._read_or_note(
            "owner", lambda: self.api.read_page(path, limit=MAX_EVENTS, fieldSelector="type=Warning")
        )
        self.facts.owner_problem = objects.find_owner_problem(iterate_objects(listed, "items"), self.name, path)

    async def _read_or_note(self, subject: str, read: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await read()
        except KubeApiError as error:
            self.facts.unknown.append(to_unknown(subject, error))
            return None


def to_unknown(subject: str, error: KubeApiError) -> Unknown:
    """Note that the API server did not let this process read ``subject``."""
    cause: Cause = "api-server-down" if error.status == NO_ANSWER or error.status >= 500 else "not-allowed"
    return Unknown(subject, cause, str(error))


def _map_entries(listed: Any, fact: Callable[[Fields], T]) -> list[T] | None:
    return None if listed is None else [fact(facts) for facts in iterate_objects(listed, "items")]


def _join_path(collection: str, facts: Fields) -> str:
    return f"{collection}/{get_text(facts, 'metadata', 'name')}"


def _rank_latest_first(event: Evidence) -> float:
    return -event.time.timestamp() if event.time else 0.0

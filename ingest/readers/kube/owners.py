"""The full chain of a pod's owners, from the API server: a Job's CronJob, a Deployment's inference service.

Each owner is asked for once and remembered. Where the account may not read a kind, the chain ends below it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from ingest.reading.protocol import Sink
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects
from runtime.kubernetes.pod_description import get_controller
from runtime.kubernetes.resources import Key, Resource
from schemas.events import AttemptConcluded, Event, Owner, PodDescription, PodObserved
from schemas.json_types import Json

log = logging.getLogger(__name__)

MAX_REMEMBERED: Final = 50_000
MAX_OWNERS: Final = 8
"""Owners of one pod; real chains have up to four."""
ASKED_AGAIN_SECONDS: Final = 600.0
"""After so long a kind that was forbidden is asked for again."""
FORBIDDEN: Final = 403

_AT_ONCE: Final = 8

_OwnerKey = tuple[str, str, str, str]


class MetadataClient(Protocol):
    """``runtime.kubernetes.client.Client``, as far as it is used here."""

    async def get(self, path: str) -> Json: ...

    async def get_metadata(self, path: str) -> Json: ...


class Owners:
    """Raises nothing: what can't be read ends a chain."""

    def __init__(self, client: MetadataClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._above: BoundedCache[_OwnerKey, Owner | None] = BoundedCache(MAX_REMEMBERED)
        """By owner, its own controller."""
        self._resources: dict[str, dict[str, Resource]] = {}
        """By the path of a group and version, the resource of each kind."""
        self._refused_at: dict[str, float] = {}
        """By kind, when the API server refused to show one."""
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def read_chain(self, namespace: str, owners: Sequence[Owner]) -> list[Owner]:
        """Read the pod's owners as far up as possible; ``owners`` are those that the pod itself names."""
        # One that was derived from a name has no version; its ReplicaSet names it again, with one.
        read_owners = [owner for owner in owners if owner.api_version]
        while read_owners and len(read_owners) < MAX_OWNERS:
            async with self._turns:
                above = await self._read_controller(namespace, read_owners[-1])
            if above is None:
                break
            read_owners.append(above)
        return read_owners if len(read_owners) > len(owners) else _merge_owners(read_owners, owners)

    async def _read_controller(self, namespace: str, owner: Owner) -> Owner | None:
        key = (namespace, owner.api_version, owner.kind, owner.name)
        if key not in self._above and (owner_object := await self._read(namespace, owner)) is not None:
            self._above.put(key, get_controller(owner_object))
        return self._above.get(key)

    async def _read(self, namespace: str, owner: Owner) -> Fields | None:
        """Read the owner's object, empty if it was deleted; None if it can't be read now."""
        kind = f"{owner.kind} ({owner.api_version})"
        refused_at = self._refused_at.get(kind)
        if refused_at is not None and self._clock() - refused_at < ASKED_AGAIN_SECONDS:
            return None
        try:
            resource = await self._find_resource(owner)
            return (
                await self._client.get_metadata(resource.build_object_path(Key(namespace, owner.name)))
                if resource
                else {}
            )
        except KubeApiError as error:
            if error.status == FORBIDDEN:
                if refused_at is None:
                    log.warning("owners of pods are read up to their %s: %s", kind, error)
                self._refused_at[kind] = self._clock()
            return {} if error.is_missing else None

    async def _find_resource(self, owner: Owner) -> Resource | None:
        path = f"/{'apis' if '/' in owner.api_version else 'api'}/{owner.api_version}"
        if path not in self._resources:
            self._resources[path] = dict(_iterate_resources(path, await self._client.get(path)))
        return self._resources[path].get(owner.kind)


def _iterate_resources(path: str, listed: Fields) -> Iterator[tuple[str, Resource]]:
    for entry in iterate_objects(listed, "resources"):
        # A name with a slash is a subresource.
        if (name := get_text(entry, "name")) and "/" not in name:
            yield get_text(entry, "kind"), Resource(path, name, is_namespaced=entry.get("namespaced") is True)


def _merge_owners(read_owners: Sequence[Owner], owners: Sequence[Owner]) -> list[Owner]:
    """Merge the owners that were read with those that only the pod names."""
    return [*read_owners, *owners[len(read_owners) :]]


class DescribingSink:
    """Completes the owners in descriptions of pods on the way to another sink."""

    def __init__(self, sink: Sink, owners: Owners) -> None:
        self._sink, self._owners = sink, owners

    async def send(self, events: Sequence[Event]) -> None:
        """Return when the other sink has stored them."""
        await self._sink.send(await asyncio.gather(*map(self._describe, events)))

    async def _describe(self, event: Event) -> Event:
        if isinstance(event, PodObserved | AttemptConcluded) and event.description and event.description.owners:
            owners = await self._owners.read_chain(event.pod.namespace, event.description.owners)
            description: PodDescription = event.description.model_copy(update={"owners": owners})
            return event.model_copy(update={"description": description})
        return event

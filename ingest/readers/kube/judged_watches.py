"""Feeds the objects that refused pods are judged on, from watches of their own and from those of the reader.

A kind that may not be read is left out, and a pod whose verdict needs it has the missing right in its attempt.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from engine.filters.release import SchedulerRelease, parse_release
from ingest.readers.kube.judged_kinds import WATCHED_ANYWAY, WATCHED_TO_JUDGE, JudgedKind
from ingest.readers.kube.judged_objects import JudgedObjects
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import get_text
from runtime.kubernetes.reflector import ChangeHandler, Reflector, Selection, WatchTimeouts
from runtime.kubernetes.store import ObjectRef
from schemas.json_types import Json

log = logging.getLogger(__name__)

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
_VERSION: Final = "/version"


class SharedFeed:
    """Passes the changes of one kind of objects on to several takers."""

    def __init__(self, *takers: ChangeHandler) -> None:
        self._takers = takers

    def on_changed(self, resource: Json) -> None:
        """Pass the present state of an object on."""
        for taker in self._takers:
            taker.on_changed(resource)

    def on_deleted(self, ref: ObjectRef) -> None:
        """Pass the deletion of an object on."""
        for taker in self._takers:
            taker.on_deleted(ref)


class JudgedFeed:
    """Takes the changes of one kind of objects."""

    def __init__(self, objects: JudgedObjects, entry: JudgedKind) -> None:
        self._objects, self._entry = objects, entry
        self._version = entry.resource.root.removeprefix("/apis/").removeprefix("/api/")

    def on_changed(self, resource: Json) -> None:
        """Take the present state of an object."""
        try:
            self._objects.put(self._entry.kind, self._version, resource)
        except Exception:
            # A defect that one object reveals must not end the watch of all others.
            log.exception("a defect: a %s is not judged on: %.300s", self._entry.kind, resource.get("metadata"))

    def on_deleted(self, ref: ObjectRef) -> None:
        """Take the deletion of an object."""
        self._objects.remove(self._entry.kind, ref.key.namespace, ref.key.name)


async def read_release(client: Client) -> SchedulerRelease:
    """Read the release of the API server, which its scheduler has too in almost every cluster."""
    try:
        return parse_release(get_text(await client.get(_VERSION), "gitVersion"))
    except KubeApiError as error:
        log.info("the version of the cluster is not known, and pods are judged as by the latest: %s", error)
        return SchedulerRelease()


async def build_reflectors(
    client: Client,
    objects: JudgedObjects,
    timeouts: WatchTimeouts,
    takers: Mapping[str, ChangeHandler],
    *,
    is_claim_read: bool,
) -> dict[str, Reflector]:
    """Build a reflector for each kind that the cluster has and the account may list.

    takers: further takers of objects, by kind. is_claim_read: True if the reader watches the resource claims.
    """
    claim, forbidden = WATCHED_ANYWAY["claim"], dict[str, JudgedKind]()
    if not is_claim_read and await _probe(client, claim) == FORBIDDEN:
        forbidden[claim.kind] = claim
    reflectors = {}
    for entry in WATCHED_TO_JUDGE:
        status = await _probe(client, entry)
        if status == FORBIDDEN:
            forbidden[entry.kind] = entry
        elif status != NOT_FOUND:
            feed = SharedFeed(*filter(None, (JudgedFeed(objects, entry), takers.get(entry.kind))))
            reflectors[entry.kind] = Reflector(client, Selection(entry.resource), feed, timeouts)
    objects.unread |= forbidden.keys()
    if forbidden:
        rights = ", ".join(sorted(entry.right for entry in forbidden.values()))
        log.warning(
            "refused pods that need these objects are judged without a verdict on them; allow list and watch of %s",
            rights,
        )
    return reflectors


async def _probe(client: Client, entry: JudgedKind) -> int:
    """Probe whether a kind can be listed, and return the status of the answer; 0 where there is none."""
    try:
        await client.get_page(entry.resource.build_collection_path(), limit=1)
    except KubeApiError as error:
        # An API server that is down does not prove that the kind is missing.
        return error.status
    return 0


def describe_problem(reflectors: Iterable[Reflector]) -> str:
    """Describe why the objects may not be those of the cluster; empty while all watches work."""
    return next((reflector.problem for reflector in reflectors if reflector.problem), "")

"""The objects that refused pods are judged on, as the watches deliver them, and the cluster at one moment of them.

A moment is never changed afterwards. Pods that wait are in none: nobody else is judged by them, so that their coming
and their conditions leave the cluster as it is.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from engine.cases.refused_pods import ClusterToJudge, collect_cluster
from engine.diagnosis.layers.group_members import find_group_name
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot import kinds
from engine.snapshot.reading import EMPTY, ObjectKey, change_snapshot
from engine.snapshot.snapshot import Snapshot
from ingest.readers.kube.judged_fields import reduce_object, reduce_waiting_pod
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

_ENDED = ("Succeeded", "Failed")


def _identify(pod: Json) -> tuple[str, str]:
    return get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")


def _find_nothing_listed() -> str:
    return "nothing has been listed yet"


class ClusterMoment(NamedTuple):
    """The cluster as it was at one moment; ``revision`` counts the moments that differ."""

    revision: int
    snapshot: Snapshot


class JudgedObjects:
    """Objects that pods are judged on, reduced to what the judge reads."""

    def __init__(self, release: SchedulerRelease = LATEST) -> None:
        """Start without objects; ``release``: of the cluster's scheduler."""
        self.release = release
        self.find_problem: Callable[[], str] = _find_nothing_listed
        """Finds why the objects may not be those of the cluster now; empty while they are."""
        self.unread: frozenset[str] = frozenset()
        """Kinds that may not be read."""
        self._digests: dict[ObjectKey, bytes] = {}
        self._waiting: dict[tuple[str, str], Json] = {}
        self._changes: dict[ObjectKey, Json | None] = {}
        self._moment = ClusterMoment(0, EMPTY)
        self._collected = collect_cluster(EMPTY, release)

    def find_waiting(self, namespace: str, name: str) -> Json | None:
        """Find a pod that has no node."""
        return self._waiting.get((namespace, name))

    def list_siblings(self, pod: Json) -> list[Json]:
        """List the other waiting pods of a pod's group, by name; none for a pod without a group."""
        group, key = find_group_name(pod), _identify(pod)
        if not group:
            return []
        others = (self._waiting[name] for name in sorted(self._waiting) if name[0] == key[0] and name != key)
        return [other for other in others if find_group_name(other) == group]

    def put(self, kind: str, version: str, value: Mapping[str, Any]) -> None:
        """Put an object of a kind (`engine.snapshot.kinds`) in the place of its former state.

        version: its apiVersion, which lists leave out.
        """
        key = (kind, get_text(value, "metadata", "namespace"), get_text(value, "metadata", "name"))
        if kind == kinds.POD:
            self._put_pod(key, value)
        else:
            self._change(key, {"apiVersion": version, "kind": kind.partition(".")[0], **reduce_object(kind, value)})

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object that was deleted."""
        if kind == kinds.POD:
            self._waiting.pop((namespace, name), None)
        self._drop((kind, namespace, name))

    def _put_pod(self, key: ObjectKey, pod: Mapping[str, Any]) -> None:
        is_placed = bool(get_text(pod, "spec", "nodeName"))
        if get_text(pod, "status", "phase") in _ENDED:
            self.remove(*key)
            return
        if is_placed:
            self._waiting.pop(key[1:], None)
        else:
            self._waiting[key[1:]] = reduce_waiting_pod(pod)
        if is_placed or get_text(pod, "status", "nominatedNodeName"):
            self._change(key, reduce_object(kinds.POD, pod))
        else:
            self._drop(key)

    def _change(self, key: ObjectKey, value: Json) -> None:
        digest = blake2b(orjson.dumps(value), digest_size=16).digest()
        if self._digests.get(key) != digest:
            self._digests[key] = digest
            self._changes[key] = value

    def _drop(self, key: ObjectKey) -> None:
        if self._digests.pop(key, None):
            self._changes[key] = None

    def take_moment(self) -> ClusterMoment:
        """Take the cluster as it is now; the same moment as before while no object has changed."""
        before = self._moment
        if self._changes or before.snapshot.unread != self.unread:
            changed = [value for value in self._changes.values() if value is not None]
            removed = [key for key, value in self._changes.items() if value is None]
            snapshot = change_snapshot(before.snapshot, changed, removed, unread=self.unread)
            self._moment = ClusterMoment(before.revision + 1, snapshot)
            self._changes = {}
        return self._moment

    def collect(self, moment: ClusterMoment) -> ClusterToJudge:
        """Collect the devices and claims of a moment next to its other objects."""
        if self._collected.snapshot is not moment.snapshot:
            self._collected = collect_cluster(moment.snapshot, self.release, self._collected)
        return self._collected

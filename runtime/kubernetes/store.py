"""Objects of a cluster, as lists, watch events and the answers to our writes report them. Pure.

The three sources arrive in any order: a list is read page by page while a watch runs, and a write is answered before
the watch reports it. The object's resourceVersion decides, which only grows: an older report changes nothing, and the
same report counts once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.resources import Key
from runtime.kubernetes.watch_events import Bookmark, Deleted, WatchEvent
from schemas.json_types import Json

MAX_DELETED_KEPT: Final = 10_000
"""Limit of the deleted objects that are remembered, to ignore late reports about them."""


class ObjectRef(NamedTuple):
    """One object; another object of the same name has a different `uid`."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Update:
    """The object is new or has changed."""

    obj: Json


@dataclass(frozen=True, slots=True)
class Removal:
    """The object was deleted, or does not match the selection any more."""

    ref: ObjectRef


Change = Update | Removal


class ObjectStore:
    """Version of every object that exists. Each method returns the changes that its input makes.

    `version` is where a watch continues; it is empty before the first list, and when only another list can help.
    """

    def __init__(self) -> None:
        self.version = ""
        self._versions: dict[Key, tuple[str, int]] = {}
        self._deleted: BoundedCache[str, int] = BoundedCache(MAX_DELETED_KEPT)
        self._listed_at = -1

    def __len__(self) -> int:
        return len(self._versions)

    def apply_event(self, event: WatchEvent) -> list[Change]:
        """Take one event of the watch."""
        if isinstance(event, Bookmark):
            self.version = event.version
            return []
        # Also of events that change nothing for us: this is where a broken watch resumes.
        self.version = event.obj["metadata"]["resourceVersion"]
        if isinstance(event, Deleted):
            return list(self._remove(to_ref(event.obj), parse_version(event.obj)))
        return self.apply_object(event.obj)

    def apply_object(self, obj: Json) -> list[Change]:
        """Take an object that was read, or that the API server returned for our own write."""
        ref, version = to_ref(obj), parse_version(obj)
        uid, before = self._versions.get(ref.key, ("", -1))
        # An object that left the selection may come back; one that was deleted has no later version.
        deleted = self._deleted.get(ref.uid)
        if version <= (before if deleted is None else max(before, deleted)):
            return []
        # An object that a complete list did not contain was deleted by then, however late a report of it arrives.
        if not uid and version <= self._listed_at:
            return []
        # Deleted and created again while the watch was down: without both changes the handler would keep the old
        # object's state.
        changes: list[Change] = list(self._remove(ObjectRef(ref.key, uid), version)) if uid and uid != ref.uid else []
        self._versions[ref.key] = (ref.uid, version)
        return [*changes, Update(obj)]

    def _remove(self, ref: ObjectRef, version: int) -> Iterator[Removal]:
        # By UID: a name may be used again at once, a UID never.
        self._deleted.put(ref.uid, version)
        if self._versions.get(ref.key, ("", 0))[0] == ref.uid:
            del self._versions[ref.key]
            yield Removal(ref)

    def remove_absent(self, listed: set[str], version: int) -> list[Change]:
        """Remove the objects that a complete list of `version` does not contain; `listed` holds the list's UIDs."""
        self._listed_at = max(self._listed_at, version)
        # An object of a later version was created after the list was made: its absence proves nothing.
        lost = [
            ObjectRef(key, uid)
            for key, (uid, object_version) in self._versions.items()
            if uid not in listed and object_version <= version
        ]
        return [removal for ref in lost for removal in self._remove(ref, version)]


class PagedList:
    """List that is being read: pages are applied as they come; absent objects are removed after the last page."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._uids: set[str] = set()

    def add_page(self, items: Iterable[Json]) -> list[Change]:
        changes: list[Change] = []
        for obj in items:
            self._uids.add(to_ref(obj).uid)
            changes += self._store.apply_object(obj)
        return changes

    def finish(self, version: str) -> list[Change]:
        """Complete the list: a watch may continue from `version`, unless one has come further already."""
        # A list that is read while the watch runs may be older than the latest event of the watch.
        if not self._store.version:
            self._store.version = version
        return self._store.remove_absent(self._uids, int(version) if version.isdigit() else -1)


def to_ref(obj: Json) -> ObjectRef:
    metadata = obj["metadata"]
    return ObjectRef(Key(metadata.get("namespace", ""), metadata["name"]), metadata.get("uid", ""))


def parse_version(obj: Json) -> int:
    """Parse the object's resourceVersion: a number to compare within one kind (Kubernetes promises that since 1.35)."""
    version = str(obj["metadata"].get("resourceVersion", ""))
    # 0 without one, so that any report with a version is newer.
    return int(version) if version.isdigit() else 0

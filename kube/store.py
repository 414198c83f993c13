"""Which objects there are, as lists, watch notices and the answers to our own writes tell it. Pure.

The three come in any order: a list is paged while a watch goes on, and a write is answered before the watch repeats it.
What counts is the object's version, which only grows: older news changes nothing, and the same news counts once.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kube.resources import Json, Key
from kube.watch_events import Bookmark, Gone, Notice

REMEMBERED_GONE: Final = 10_000
"""Of so many deleted objects it is known that late news about them is void."""


class Ref(NamedTuple):
    """One object, which another of the same name does not equal."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Update:
    """The object is new or has changed."""

    found: Json


@dataclass(frozen=True, slots=True)
class Removal:
    """The object is no more, or no longer among those that were selected."""

    ref: Ref


Change = Update | Removal


class Mirror:
    """`version`: where a watch goes on; empty before the first list and when only a list can help."""

    def __init__(self) -> None:
        self.version = ""
        self._known: dict[Key, tuple[str, int]] = {}
        self._gone: OrderedDict[str, int] = OrderedDict()
        self._whole_at = -1

    def __len__(self) -> int:
        return len(self._known)

    def notice(self, said: Notice) -> list[Change]:
        """What changes by one word of the watch."""
        if isinstance(said, Bookmark):
            self.version = said.version
            return []
        self.version = said.found["metadata"]["resourceVersion"]
        if isinstance(said, Gone):
            return list(self._remove(ref_of(said.found), number_of(said.found)))
        return self.take(said.found)

    def take(self, found: Json) -> list[Change]:
        """What changes by an object as it was read, or as it is after our own write."""
        ref, version = ref_of(found), number_of(found)
        uid, before = self._known.get(ref.key, ("", -1))
        # One that left the selection may come back; one that was deleted has no later version.
        if version <= max(before, self._gone.get(ref.uid, -1)):
            return []
        # What a whole list did not show was gone by then, however late we hear of it.
        if not uid and version <= self._whole_at:
            return []
        changes: list[Change] = list(self._remove(Ref(ref.key, uid), version)) if uid and uid != ref.uid else []
        self._known[ref.key] = (ref.uid, version)
        return [*changes, Update(found)]

    def _remove(self, ref: Ref, version: int) -> Iterator[Removal]:
        self._gone[ref.uid] = version
        if len(self._gone) > REMEMBERED_GONE:
            self._gone.popitem(last=False)
        if self._known.get(ref.key, ("", 0))[0] == ref.uid:
            del self._known[ref.key]
            yield Removal(ref)

    def absent(self, listed: set[str], version: int) -> list[Change]:
        """What a whole list as of `version` proves to be gone, of which it names every UID."""
        self._whole_at = max(self._whole_at, version)
        lost = [Ref(key, uid) for key, (uid, known) in self._known.items() if uid not in listed and known <= version]
        return [removal for ref in lost for removal in self._remove(ref, version)]


class Listing:
    """One list in the making: its pages are applied as they come, what it lacks when it is whole."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._uids: set[str] = set()

    def page(self, items: Iterable[Json]) -> list[Change]:
        changes: list[Change] = []
        for found in items:
            self._uids.add(ref_of(found).uid)
            changes += self._mirror.take(found)
        return changes

    def end(self, version: str) -> list[Change]:
        """The list is whole; a watch may go on from `version`, unless one is further already."""
        if not self._mirror.version:
            self._mirror.version = version
        return self._mirror.absent(self._uids, int(version) if version.isdigit() else -1)


def ref_of(found: Json) -> Ref:
    metadata = found["metadata"]
    return Ref(Key(metadata.get("namespace", ""), metadata["name"]), metadata.get("uid", ""))


def number_of(found: Json) -> int:
    """The object's version. Those of one kind may be compared as numbers (Kubernetes promises it since 1.35)."""
    version = str(found["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdigit() else 0

"""Objects by which the API server completes or refuses a new pod: quotas, LimitRanges, and classes that pods name."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from api.answers.object_lists import ObjectLists
from engine.diagnosis.texts import write_phrase
from engine.simulation.setting import Note
from engine.simulation.workloads import PodTemplate
from engine.snapshot import kinds
from engine.snapshot.needed_kinds import list_creation
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json


class CreationObjects(NamedTuple):
    """Objects of the pods' namespaces and of the cluster, and the collections that could not be read."""

    objects: Sequence[Json] = ()
    unread: Sequence[str] = ()
    """Plurals of the collections, in the order of reading."""
    has_quotas: bool = False
    """True if the quotas of all namespaces were read."""

    def describe_unread(self) -> tuple[Note, ...]:
        """Describe the rights that are missing; nothing if everything was read."""
        if not self.unread:
            return ()
        return (Note("CreationUnread", write_phrase("note_creation_unread", rights=", ".join(self.unread))),)


async def read_creation_objects(lists: ObjectLists, workloads: Iterable[PodTemplate]) -> CreationObjects:
    """Read what decides whether the pods of workloads are created, and those of the pods that exist already."""
    pods = [workload.pod for workload in workloads]
    namespaces = dict.fromkeys(get_text(pod, "metadata", "namespace") for pod in pods)
    listed = {entry.path: entry for name in namespaces for entry in list_creation(name)}
    read = await asyncio.gather(*map(lists.read, listed.values()))
    unread = {entry.kind for entry in read if entry.error or entry.is_cut}
    objects = {(entry.kind, *key): dict(value) for entry in read for key, value in entry.table.items()}
    return CreationObjects(
        [*objects.values(), *filter(_is_stored, pods)],
        list(dict.fromkeys(path.rpartition("/")[2] for path, entry in listed.items() if entry.kind in unread)),
        kinds.RESOURCE_QUOTA not in unread,
    )


def _is_stored(pod: Json) -> bool:
    """Tell whether the pod is a copy of one that the API server has, which no quota refuses any more."""
    return bool(get_text(pod, "metadata", "uid") and get_text(pod, "metadata", "creationTimestamp"))

"""Pods that wait and members of groups, with the events about them, and the names by which other objects concern them.

A pod with a node is kept only as a member of a group, and only by its name, its marks and its phase.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from engine.diagnosis.layers.group_members import find_group_name
from engine.snapshot import kinds
from engine.snapshot.case_objects import Key, list_claim_names
from engine.snapshot.trimming import trim_object
from ingest.readers.kube.objects import derive_change_time
from ingest.readers.kube.scheduling_events import REASONS, find_reporter, list_times
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions
from schemas.events import Condition
from schemas.json_types import Json

MAX_PODS: Final = 5_000
"""Limit of the waiting pods that are kept; of more, the later ones are listed by what they say themselves."""
MAX_EVENTS: Final = 8
"""Limit of the events of one pod that are kept: the latest of each reporter and reason."""
_MAX_NAME: Final = 253
_ENDED: Final = ("Succeeded", "Failed")
_MEMBER_METADATA: Final = ("namespace", "name", "uid", "labels", "annotations")
_MEMBER_SPEC: Final = ("nodeName", "schedulingGroup", "schedulerName")
_REFUSALS: Final = ("Unschedulable", "SchedulerError")
_CLAIMS: Final = ("resourceClaimName", "resourceClaimTemplateName")


@dataclass(slots=True)
class StoredPod:
    """A pod without a node, and the names by which other objects concern it."""

    fields: Fields
    changed_at: datetime
    """Time of its last change, from the object only."""
    names: frozenset[str]
    events: dict[tuple[str, str], Fields] = field(default_factory=dict)
    """By reporter and reason."""

    @property
    def latest_at(self) -> datetime:
        """Time of the latest change of the pod and of the events about it."""
        return max([self.changed_at, *(time for event in self.events.values() for time in list_times(event))])

    @property
    def decided_at(self) -> datetime | None:
        """Time of the latest decision of a scheduler that an event or the condition reports; None without any."""
        decisions = (event for (_, reason), event in self.events.items() if reason in REASONS)
        times = [time for event in decisions for time in list_times(event)]
        times += [entry.last_transition_at for entry in self._list_refusals() if entry.last_transition_at]
        return max(times, default=None)

    @property
    def is_tried(self) -> bool:
        """True if a scheduler has decided about the pod."""
        return self.decided_at is not None

    def _list_refusals(self) -> list[Condition]:
        conditions = (entry for entry in list_conditions(self.fields) if entry.type == "PodScheduled")
        return [entry for entry in conditions if entry.status == "False" and entry.reason in _REFUSALS]


class PodStore:
    """Pods by namespace and name."""

    def __init__(self) -> None:
        self.waiting: dict[Key, StoredPod] = {}
        self.table: dict[Key, Fields] = {}
        """Objects of the waiting pods and of the members of groups."""
        self.changed: set[Key] = set()
        """Waiting pods that something concerned since somebody cleared the set."""
        self._by_name: dict[Key, set[Key]] = {}
        """Waiting pods by the names that they mention."""

    def put(self, pod: Mapping[str, Any]) -> None:
        """Take the present state of a pod."""
        key = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
        changed_at = derive_change_time(pod)
        before = self.waiting.get(key)
        if not _waits(pod) or changed_at is None or (before is None and len(self.waiting) >= MAX_PODS):
            self._drop(key)
            self._put_member(key, pod)
            return
        self._put_waiting(key, pod, changed_at, before)

    def _put_waiting(self, key: Key, pod: Mapping[str, Any], changed_at: datetime, before: StoredPod | None) -> None:
        fields = {"apiVersion": "v1", "kind": "Pod", **trim_object(kinds.POD, pod)}
        entry = StoredPod(fields, changed_at, frozenset(_iterate_names(fields)))
        if before and get_text(before.fields, "metadata", "uid") == get_text(fields, "metadata", "uid"):
            entry.events = before.events
        if before is None or before.names != entry.names:
            self._drop(key)
            for name in entry.names:
                self._by_name.setdefault((key[0], name), set()).add(key)
        self.waiting[key], self.table[key] = entry, fields
        self.changed.add(key)
        if before is None:
            self._note_members(key, fields)

    def _put_member(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Keep a pod that has a node if a group needs it."""
        if not find_group_name(pod) or get_text(pod, "status", "phase") in _ENDED:
            self._forget(key)
            return
        is_new = not get_text(self.table.get(key), "spec", "nodeName")
        self.table[key] = _reduce_member(pod)
        if is_new:
            self._note_members(key, pod)

    def remove(self, namespace: str, name: str) -> None:
        """Forget a pod that was deleted."""
        self._drop((namespace, name))
        self._forget((namespace, name))

    def _forget(self, key: Key) -> None:
        if member := self.table.pop(key, None):
            self._note_members(key, member)

    def _drop(self, key: Key) -> None:
        """Drop a pod from those that wait."""
        entry = self.waiting.pop(key, None)
        self.changed.discard(key)
        for name in entry.names if entry else ():
            pods = self._by_name.get((key[0], name), set())
            pods.discard(key)
            if not pods:
                self._by_name.pop((key[0], name), None)

    def _note_members(self, key: Key, pod: Fields) -> None:
        """Note that a pod concerns the waiting members of its group."""
        if group := find_group_name(pod):
            self.note_concern(key[0], [group])

    def note_concern(self, namespace: str, names: Iterable[str]) -> None:
        """Note that an object with one of these names, or an owner of it, has changed."""
        for name in names:
            self.changed |= self._by_name.get((namespace, name), set())

    def put_event(self, event: Mapping[str, Any]) -> None:
        """Keep the latest event of its reporter and reason about a waiting pod; others are not needed."""
        subject = get_object(event, "regarding") or get_object(event, "involvedObject")
        key = get_text(subject, "namespace"), get_text(subject, "name")
        if get_text(subject, "kind") != "Pod" or (entry := self.waiting.get(key)) is None:
            return
        if get_text(subject, "uid") not in ("", get_text(entry.fields, "metadata", "uid")):
            return
        label = find_reporter(event), get_text(event, "reason")
        entry.events.pop(label, None)
        entry.events[label] = {"kind": "Event", **trim_object("Event", event)}
        if len(entry.events) > MAX_EVENTS:
            del entry.events[next(iter(entry.events))]
        self.changed.add(key)


def _waits(pod: Fields) -> bool:
    is_deleted = get_text(pod, "metadata", "deletionTimestamp")
    return not get_text(pod, "spec", "nodeName") and get_text(pod, "status", "phase") == "Pending" and not is_deleted


def _reduce_member(pod: Fields) -> Json:
    metadata = {name: value for name, value in get_object(pod, "metadata").items() if name in _MEMBER_METADATA}
    spec = {name: value for name, value in get_object(pod, "spec").items() if name in _MEMBER_SPEC}
    return {"metadata": metadata, "spec": spec, "status": {"phase": get_text(pod, "status", "phase")}}


def _iterate_names(pod: Fields) -> Iterator[str]:
    """Iterate over the names that a pod mentions: owners, groups and queues of its marks, and its claims."""
    metadata, spec = get_object(pod, "metadata"), get_object(pod, "spec")
    yield get_text(metadata, "name")
    yield from (get_text(owner, "name") for owner in iterate_objects(metadata, "ownerReferences"))
    for marks in ("labels", "annotations"):
        texts = get_object(metadata, marks).values()
        yield from (text for text in texts if isinstance(text, str) and 0 < len(text) <= _MAX_NAME)
    yield get_text(spec, "schedulingGroup", "podGroupName")
    yield from list_claim_names(pod)
    for request in iterate_objects(spec, "resourceClaims"):
        yield from (get_text(request, name) for name in _CLAIMS)
    statuses = iterate_objects(pod, "status", "resourceClaimStatuses")
    yield from (get_text(entry, "resourceClaimName") for entry in statuses)

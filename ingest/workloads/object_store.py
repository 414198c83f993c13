"""Objects of workloads, queues, groups and claims as the watches deliver them, pods that wait, and owners of all pods.

A cluster has ten thousand pods, and of those with a node only the owners are kept; a workload that has pods needs no
template.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from engine.cases.workload_words import HOLDERS, WORDS
from engine.cases.workloads import CaseWorkload, counts_pods, list_owners
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects, Key
from engine.snapshot.trimming import trim_object
from ingest.workloads.pod_store import PodStore, StoredPod
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects
from schemas.json_types import Json

MAX_EVENTS: Final = 1_000
"""Limit of the events about workloads that are kept: the latest of each workload and reason."""
_EVENTS: Final = "Event.events.k8s.io"
_MAKERS: Final = frozenset(kind for listed in WORDS.values() for kind in listed) - frozenset(HOLDERS)
_SUBJECTS: Final = frozenset(kind.partition(".")[0] for kind in (*_MAKERS, *HOLDERS))
"""Kinds of objects whose events say why a workload has no pods, without their groups."""
_CONTAINER: Final = ("name", "resources")
_CONTAINERS: Final = ("initContainers", "containers")
CLAIM_KINDS: Final = (
    kinds.VOLUME_CLAIM, kinds.STORAGE_CLASS, kinds.RESOURCE_CLAIM, kinds.CLAIM_TEMPLATE, kinds.DEVICE_CLASS,
)  # fmt: skip
"""Kinds of claims, and of what they name: what holds a pod, and no workload."""
_COUNTING: Final = ("LocalQueue.kueue.x-k8s.io", "ClusterQueue.kueue.x-k8s.io", "Queue.scheduling.volcano.sh")
"""Kinds whose status counts with each pod that comes or goes."""
_STATUS: Final = (
    "conditions", "active", "replicas", "running", "pending", "succeeded", "phase", "state", "message",
    "applicationState", "jobDeploymentStatus",
)  # fmt: skip
_OVER: Final = ("Succeeded",)


class WorkloadObjects:
    """Present objects by kind."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Key, Fields]] = {}
        self._events: OrderedDict[tuple[str, str, str, str], Fields] = OrderedDict()
        """By kind, namespace and name of the subject, and reason."""
        self._owners: dict[Key, CaseWorkload] = {}
        """By pod."""
        self._pods_of: Counter[CaseWorkload] = Counter()
        self.changed: set[CaseWorkload] = set()
        """Objects that changed since somebody cleared the set."""
        self.pods = PodStore()
        self.listed: frozenset[str] = frozenset()
        """Kinds that are watched."""
        self.unread: frozenset[str] = frozenset((*CLAIM_KINDS, kinds.RESOURCE_QUOTA))
        """Kinds of which the cluster may have objects that are not watched."""

    def put(self, kind: str, version: str, value: Mapping[str, Any]) -> None:
        """Put an object in the place of its former state. ``version``: its apiVersion, which lists leave out."""
        key = get_text(value, "metadata", "namespace"), get_text(value, "metadata", "name")
        reduced = {"apiVersion": version, "kind": kind.partition(".")[0], **reduce_object(kind, value)}
        before = self._tables.setdefault(kind, {}).get(key)
        self._tables[kind][key] = reduced
        self._note(kind, key, before, reduced)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object that was deleted."""
        before = self._tables.get(kind, {}).pop((namespace, name), None)
        self._note(kind, (namespace, name), before, None)

    def _note(self, kind: str, key: Key, before: Fields | None, after: Fields | None) -> None:
        """Note a change for the workloads and pods that it concerns."""
        if kind not in CLAIM_KINDS:
            self.changed.add(CaseWorkload(kind, *key))
        if kind in _COUNTING and before and after and _get_state(before) == _get_state(after):
            return
        owners = (get_text(owner, "name") for owner in iterate_objects(after or before, "metadata", "ownerReferences"))
        self.pods.note_concern(key[0], (key[1], *owners))

    def put_pod(self, pod: Mapping[str, Any]) -> None:
        """Note a pod and its owner; one that has succeeded is none that its owner has now."""
        self.pods.put(pod)
        key = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
        owner = next(iter(list_owners(pod, key[0])), None)
        if owner is None or get_text(pod, "status", "phase") in _OVER:
            self._forget_owner(key)
        elif self._owners.get(key) != owner:
            self._forget_owner(key)
            self._owners[key] = owner
            self._pods_of[owner] += 1
            self.changed.add(owner)

    def remove_pod(self, namespace: str, name: str) -> None:
        """Forget a pod that was deleted."""
        self.pods.remove(namespace, name)
        self._forget_owner((namespace, name))

    def _forget_owner(self, key: Key) -> None:
        if owner := self._owners.pop(key, None):
            self._pods_of[owner] -= 1
            self.changed.add(owner)
            if not self._pods_of[owner]:
                del self._pods_of[owner]

    def put_event(self, event: Mapping[str, Any]) -> None:
        """Keep the latest event of its reason about a workload or a waiting pod; others are not needed."""
        self.pods.put_event(event)
        subject = get_object(event, "regarding") or get_object(event, "involvedObject")
        kind = get_text(subject, "kind")
        if kind not in _SUBJECTS:
            return
        key = kind, get_text(subject, "namespace"), get_text(subject, "name"), get_text(event, "reason")
        self._events.pop(key, None)
        self._events[key] = {"kind": "Event", **event}
        if len(self._events) > MAX_EVENTS:
            self._events.popitem(last=False)
        self.pods.note_concern(key[1], [key[2]])
        self.changed |= {
            CaseWorkload(full, key[1], key[2]) for full in (*_MAKERS, *HOLDERS) if full.partition(".")[0] == kind
        }

    def build_case_objects(self) -> CaseObjects:
        """Build the objects that a diagnosis reads: without pods."""
        events = {(key[1], "/".join(key)): event for key, event in self._events.items()}
        return CaseObjects({**self._tables, _EVENTS: events}, self.unread, self.listed)

    def build_pod_case(self, key: Key, pod: StoredPod) -> CaseObjects:
        """Build the objects that a diagnosis of a waiting pod reads: of the events, only those that concern it."""
        concerning = {
            (subject[1], "/".join(subject)): event
            for subject, event in self._events.items()
            if subject[1] == key[0] and subject[2] in pod.names
        }
        of_pod = {(key[0], f"Pod/{reporter}/{reason}"): event for (reporter, reason), event in pod.events.items()}
        tables = {**self._tables, kinds.POD: self.pods.table, _EVENTS: {**concerning, **of_pod}}
        return CaseObjects(tables, self.unread, self.listed)

    def build_listing(self) -> CaseObjects:
        """Build the objects among which workloads without pods are found: with one pod for each owner of pods."""
        case = self.build_case_objects()
        return replace(case, tables={**case.tables, kinds.POD: dict(_iterate_pods(self._pods_of))})


def _get_state(value: Fields) -> tuple[Any, ...]:
    """Get the part of a queue's fields that does not count its pods."""
    status = get_object(value, "status")
    return value.get("spec"), status.get("conditions"), status.get("state")


def _iterate_pods(owners: Iterable[CaseWorkload]) -> Iterator[tuple[Key, Fields]]:
    for owner in owners:
        kind, _, group = owner.kind.partition(".")
        reference = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "name": owner.name}
        metadata = {"namespace": owner.namespace, "name": str(owner), "ownerReferences": [reference]}
        yield (owner.namespace, str(owner)), {"metadata": metadata}


def reduce_object(kind: str, value: Fields) -> Json:
    """Reduce an object to what a diagnosis of pods that do not exist reads."""
    reduced = trim_object(kind, value)
    if kind not in _MAKERS:
        return {**reduced, "spec": _trim_containers(reduced.get("spec"))}
    status = {name: entry for name, entry in get_object(reduced, "status").items() if name in _STATUS}
    # Only a workload without pods is asked what its first pod would request.
    spec = get_object(reduced, "spec")
    if counts_pods(value):
        spec = {name: entry for name, entry in spec.items() if not isinstance(entry, Mapping | list)}
    return {**reduced, "spec": _trim_containers(spec), "status": status}


def _trim_containers(fields: Any) -> Any:
    """Trim the containers of the templates at any depth to their names and resources."""
    if isinstance(fields, list):
        return [_trim_containers(entry) for entry in fields]
    if not isinstance(fields, Mapping):
        return fields
    return {
        name: [{key: entry[key] for key in _CONTAINER if key in entry} for entry in value if isinstance(entry, Mapping)]
        if name in _CONTAINERS and isinstance(value, list)
        else _trim_containers(value)
        for name, value in fields.items()
    }

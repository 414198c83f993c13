"""Kueue's objects behind a pod or its Job: the Workload, its queues, and the Workloads that compete with it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from engine.diagnosis.facts import DiagnosisFacts
from runtime.kubernetes.object_fields import (
    Fields,
    get_object,
    get_text,
    iterate_objects,
    list_conditions,
    parse_moment,
)
from schemas.events import Condition

if TYPE_CHECKING:
    from engine.snapshot.case_objects import CaseObjects

WORKLOAD: Final = "Workload.kueue.x-k8s.io"
LOCAL_QUEUE: Final = "LocalQueue.kueue.x-k8s.io"
CLUSTER_QUEUE: Final = "ClusterQueue.kueue.x-k8s.io"
FLAVOR: Final = "ResourceFlavor.kueue.x-k8s.io"
DOMAIN: Final = "kueue.x-k8s.io"
QUEUE_LABEL: Final = f"{DOMAIN}/queue-name"
_GROUP_LABEL: Final = f"{DOMAIN}/pod-group-name"
_WORKLOAD_ANNOTATION: Final = f"{DOMAIN}/workload"

_IN_QUEUE: Final = re.compile(
    r"(?:reserved in|[Aa]dmitted by) ClusterQueue (?P<queue>[^\s,;.]+)|ClusterQueue (?P<inactive>[^\s,;]+) is inactive"
)
MAX_COMPETITORS: Final = 300
"""Limit of the Workloads that are compared: each of a list of waiting ones is compared with all."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def is_gate(gate: str) -> bool:
    """Tell whether a scheduling gate is Kueue's."""
    return gate.partition("/")[0] == DOMAIN


@dataclass(frozen=True, slots=True)
class Workload:
    """A Workload with its queues, as far as they were read."""

    object: Fields
    local_queue: Fields | None
    queue: Fields | None
    objects: "CaseObjects"
    """Objects of the case: other Workloads and queues of the cohort."""

    @property
    def name(self) -> str:
        """Name of the Workload."""
        return get_text(self.object, "metadata", "name")

    @property
    def cluster_queue(self) -> str:
        """Name of its ClusterQueue, empty if no object names it."""
        named = get_text(self.object, "status", "admission", "clusterQueue")
        return named or get_text(self.local_queue, "spec", "clusterQueue") or self._find_queue_in_words()

    def _find_queue_in_words(self) -> str:
        matches = (_IN_QUEUE.search(condition.message) for condition in list_conditions(self.object))
        return next((match["queue"] or match["inactive"] for match in matches if match), "")

    @property
    def is_admitted(self) -> bool:
        """True if Kueue lets its pods go."""
        return any(entry.type == "Admitted" and entry.status == "True" for entry in list_conditions(self.object))

    @property
    def has_finished(self) -> bool:
        """True if its Job has ended: it neither waits nor holds quota."""
        return any(entry.type == "Finished" and entry.status == "True" for entry in list_conditions(self.object))

    @property
    def is_active(self) -> bool:
        """False if somebody or Kueue has deactivated it."""
        return get_object(self.object, "spec").get("active") is not False

    @property
    def has_quota(self) -> bool:
        """True if quota is reserved for it."""
        return any(entry.type == "QuotaReserved" and entry.status == "True" for entry in list_conditions(self.object))

    @property
    def namespace(self) -> str:
        """Namespace of the Workload."""
        return get_text(self.object, "metadata", "namespace")

    @property
    def subject(self) -> str:
        """The Job or pod that it was made for, such as ``Job/train``; else its own name."""
        return next(_list_owners(self.object), f"Workload/{self.name}")

    @property
    def priority(self) -> int:
        """Priority in its queue."""
        value = get_object(self.object, "spec").get("priority")
        return value if isinstance(value, int) else 0

    @property
    def queued_at(self) -> datetime:
        """Time by which its turn is counted."""
        evicted = self.find_condition("Evicted")
        is_late = evicted and evicted.status == "True" and evicted.reason == "PodsReadyTimeout"
        created = parse_moment(get_text(self.object, "metadata", "creationTimestamp"))
        return (evicted.last_transition_at if evicted and is_late else created) or _NEVER

    def find_condition(self, kind: str) -> Condition | None:
        """Find a condition by its type."""
        return next((entry for entry in list_conditions(self.object) if entry.type == kind), None)


def find_workload(facts: DiagnosisFacts) -> Workload | None:
    """Find the Workload of the pod, of its group or of its owner; None if none was read."""
    if facts.objects is None or facts.pod is None:
        return None
    names = {facts.pod.labels.get(_GROUP_LABEL, ""), facts.pod.annotations.get(_WORKLOAD_ANNOTATION, "")} - {""}
    owners = {f"Pod/{facts.name}", *facts.pod.owners}
    for entry in facts.objects.select(WORKLOAD, facts.namespace):
        if get_text(entry, "metadata", "name") in names or owners & set(_list_owners(entry)):
            return _build_workload(facts.objects, entry, facts.namespace)
    return None


def _list_owners(entry: Fields) -> Iterator[str]:
    for owner in iterate_objects(entry, "metadata", "ownerReferences"):
        yield f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}"


def _build_workload(objects: "CaseObjects", entry: Fields, namespace: str) -> Workload:
    local_queue = objects.find(LOCAL_QUEUE, get_text(entry, "spec", "queueName"), namespace)
    workload = Workload(entry, local_queue, None, objects)
    return Workload(entry, local_queue, objects.find(CLUSTER_QUEUE, workload.cluster_queue), objects)


def list_competitors(workload: Workload, *, everywhere: bool = False) -> list[Workload]:
    """List the Workloads that were read of the same ClusterQueue, or of all, with the Workload itself.

    Empty beyond the limit: who waits with thousands is not helped by their order.
    """
    name, entries = workload.cluster_queue, workload.objects.select(WORKLOAD)
    if not name or len(entries) > MAX_COMPETITORS:
        return []
    built = (_build_workload(workload.objects, entry, get_text(entry, "metadata", "namespace")) for entry in entries)
    return [entry for entry in built if not entry.has_finished and (everywhere or entry.cluster_queue == name)]


def sort_by_turn(workloads: Sequence[Workload]) -> list[Workload]:
    """Sort waiting Workloads as Kueue's queue does: by priority, then by time of creation or last eviction."""
    return sorted(workloads, key=lambda workload: (-workload.priority, workload.queued_at, workload.name))

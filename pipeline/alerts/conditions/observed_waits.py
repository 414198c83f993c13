"""Pods that wait, as observations of the cluster show them: the base of the kinds about queues and groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from engine.diagnosis.layer_waits import find_layer_of_code
from engine.diagnosis.waiting import derive_wait_without_attempt
from schemas.answers.diagnosis import Layer
from schemas.documents.pod_states import name_workload
from schemas.events import PodObserved, PodRef, WorkloadObserved

_ENDED = ("Succeeded", "Failed")


class PodSetKey(NamedTuple):
    """Queue or group of pods of a namespace."""

    cluster: str
    namespace: str
    name: str


@dataclass(slots=True)
class PodWithoutNode:
    """A pod without a node, or a workload without pods.

    ``layer``: what holds it; None after an attempt, which says more.
    """

    pod: PodRef
    since: datetime
    observed_at: datetime
    layer: Layer | None


class ObservedWaits:
    """Waiting pods by their queue or group, and when a pod of it last went on."""

    def __init__(self, forget: timedelta) -> None:
        self.forget = forget
        self._pods: dict[PodSetKey, dict[str, PodWithoutNode]] = {}
        self.went_on_at: dict[PodSetKey, datetime] = {}
        """Time of the latest observation of a pod that has a node, or of one that its queue let go."""

    def observe(self, event: PodObserved, name: str) -> None:
        """Take an observation of a pod of the queue or group ``name``."""
        pod_set = PodSetKey(event.cluster, event.pod.namespace, name)
        pods = self._pods.setdefault(pod_set, {})
        if event.deleted or event.phase in _ENDED:
            pods.pop(event.key, None)
        elif event.node:
            pods.pop(event.key, None)
            self._note_progress(pod_set, event.observed_at)
        elif event.phase == "Pending":
            self._observe_waiting(pod_set, pods, event)

    def _observe_waiting(self, pod_set: PodSetKey, pods: dict[str, PodWithoutNode], event: PodObserved) -> None:
        wait = derive_wait_without_attempt(event)
        layer = find_layer_of_code(wait.code) if wait else None
        before = pods.get(event.key)
        if before and before.pod.uid == event.pod.uid:
            if before.layer == "queue" and layer != "queue":
                self._note_progress(pod_set, event.observed_at)
            pods[event.key] = PodWithoutNode(event.pod, before.since, event.observed_at, layer)
        else:
            created = event.description.created_at if event.description else None
            pods[event.key] = PodWithoutNode(event.pod, created or event.observed_at, event.observed_at, layer)

    def observe_workload(self, event: WorkloadObserved, name: str) -> None:
        """Take an observation of a workload without pods of the queue ``name``; its end counts as going on."""
        pod_set = PodSetKey(event.cluster, event.namespace, name)
        pods = self._pods.setdefault(pod_set, {})
        if event.is_over:
            if pods.pop(event.key, None):
                self._note_progress(pod_set, event.observed_at)
        elif event.wait:
            pod = PodRef(namespace=event.namespace, name=name_workload(event.workload.kind, event.workload.name))
            since, layer = event.created_at or event.observed_at, find_layer_of_code(event.wait.code)
            pods[event.key] = PodWithoutNode(pod, since, event.observed_at, layer)

    def _note_progress(self, pod_set: PodSetKey, moment: datetime) -> None:
        self.went_on_at[pod_set] = max(self.went_on_at.get(pod_set, moment), moment)

    def iterate_pod_sets(self, now: datetime) -> Iterator[tuple[PodSetKey, list[PodWithoutNode]]]:
        """Iterate over the queues or groups with their waiting pods; what was observed too long ago is forgotten."""
        for pod_set, pods in sorted(self._pods.items()):
            for key in [key for key, pod in pods.items() if now - pod.observed_at > self.forget]:
                del pods[key]
            if pods:
                yield pod_set, list(pods.values())
            else:
                del self._pods[pod_set]
        self.went_on_at = {
            pod_set: moment for pod_set, moment in self.went_on_at.items() if now - moment <= self.forget
        }

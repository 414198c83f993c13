"""Workloads that want pods and have none, observed when they begin to wait, wait for something else, or no longer wait.

Each observation has the obstacle that ``why job/NAME`` would name, so that lists, alerts and the index need no objects.
"""

from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from engine.cases.unmade_answers import NOT_MADE, UnmadeWorkload, explain_unmade
from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import CaseWorkload, count_wanted, find_root, list_family
from engine.diagnosis.layer_waits import find_layer_of_code
from engine.snapshot.case_objects import CaseObjects
from engine.summaries.named_pods import hide_other_pods
from ingest.workloads.object_store import WorkloadObjects
from runtime.kubernetes.object_fields import get_text, iterate_objects
from schemas.events import DEFAULT_CLUSTER, ObjectProblem, Owner, PodWait, WorkloadObserved

PASS_SECONDS: Final = 3.0
"""Time between two looks for workloads without pods: one without pods in two of them waits."""
REPEAT_SECONDS: Final = 600.0
"""Time after which a wait is observed again: the lists drop one that is not, as its watcher may have missed its end."""
TURN_SECONDS: Final = 0.05
"""Time for diagnoses in one turn: the watches share the event loop."""


@dataclass(slots=True)
class _Wait:
    """The wait of a workload as it was last observed."""

    observed_at: float
    event: WorkloadObserved


class WaitObserver:
    """Finds what waits without pods. ``now`` is in seconds on any clock that never goes back."""

    def __init__(self, objects: WorkloadObjects, cluster: str = DEFAULT_CLUSTER) -> None:
        self.objects, self._cluster = objects, cluster
        self._waits: dict[CaseWorkload, _Wait] = {}
        self._new: set[CaseWorkload] = set()
        """Workloads that had no pods in the latest look for the first time."""
        self._due: dict[CaseWorkload, None] = {}
        self._case = CaseObjects()
        self._looked_at = float("-inf")

    def observe(self, moment: datetime, now: float) -> list[WorkloadObserved]:
        """Observe what began to wait, waits for something else, or waits no more, as far as the turn's time goes."""
        events = []
        if now - self._looked_at >= PASS_SECONDS:
            events += self._look(moment, now)
        end = monotonic() + TURN_SECONDS
        while self._due and monotonic() < end:
            key = next(iter(self._due))
            del self._due[key]
            events += self._explain(key, moment, now)
        return events

    def _look(self, moment: datetime, now: float) -> list[WorkloadObserved]:
        """Look for the workloads without pods, and observe the end of the waits of others."""
        self._looked_at = now
        old = {key for key, wait in self._waits.items() if now - wait.observed_at >= REPEAT_SECONDS}
        if not (self.objects.changed or self._new or old):
            return []
        listing = self.objects.build_listing()
        self._case = self.objects.build_case_objects()
        changed = {find_root(listing, key) for key in self.objects.changed} | self.objects.changed
        self.objects.changed = set()
        unmade = set(list_unmade(listing, with_purpose=False))
        ended = [self._end(key, moment) for key in self._waits.keys() - unmade]
        # A Job that was made a moment ago has no pods either.
        settled = {key for key in unmade if key in self._new or key in self._waits}
        self._new = unmade - settled
        due = {key for key in settled if key not in self._waits or key in changed or key in old}
        self._due = dict.fromkeys([*(key for key in self._due if key in settled), *sorted(due)])
        return ended

    def _explain(self, key: CaseWorkload, moment: datetime, now: float) -> list[WorkloadObserved]:
        readable = _find_readable(self._case, key)
        if readable is None:
            return []
        event = _to_event(self._cluster, key, explain_unmade(self._case, moment, readable), moment, self._case)
        before = self._waits.get(key)
        if before and before.event.wait == event.wait and now - before.observed_at < REPEAT_SECONDS:
            return []
        self._waits[key] = _Wait(now, event)
        return [event]

    def _end(self, key: CaseWorkload, moment: datetime) -> WorkloadObserved:
        event = self._waits.pop(key).event
        return event.model_copy(update={"observed_at": moment, "is_over": True, "wait": None})


def _find_readable(objects: CaseObjects, key: CaseWorkload) -> CaseWorkload | None:
    """Find the workload; or the latest of what it made that wants pods, where its kind is not watched (Deployments)."""
    if objects.find(key.kind, key.name, key.namespace):
        return key
    wanting = [other for other in list_family(objects, key)[1:] if count_wanted(objects, other, ()) != 0]
    return max(wanting, key=lambda other: _get_creation(objects, other), default=None)


def _get_creation(objects: CaseObjects, key: CaseWorkload) -> str:
    return get_text(objects.find(key.kind, key.name, key.namespace), "metadata", "creationTimestamp")


def _find_version(objects: CaseObjects, key: CaseWorkload) -> str:
    """Find the version of a workload, which those that it made name too."""
    entries = [objects.find(other.kind, other.name, other.namespace) for other in list_family(objects, key)]
    owners = [owner for entry in entries for owner in iterate_objects(entry, "metadata", "ownerReferences")]
    named = (get_text(owner, "apiVersion") for owner in owners if get_text(owner, "name") == key.name)
    return get_text(objects.find(key.kind, key.name, key.namespace), "apiVersion") or next(named, "")


def _to_event(
    cluster: str, key: CaseWorkload, unmade: UnmadeWorkload, moment: datetime, objects: CaseObjects
) -> WorkloadObserved:
    obstacle = unmade.obstacle
    code = obstacle.code if obstacle else NOT_MADE
    # The sentence is shown to everybody who may list the namespace's pods.
    english, chinese = (
        hide_other_pods(text, key.namespace)
        for text in ((obstacle.sentence.en, obstacle.sentence.zh) if obstacle else ("", ""))
    )
    layer = find_layer_of_code(code)
    wait = PodWait(
        code=code, layer=layer or "", sentence_en=english, sentence_zh=chinese, devices=unmade.devices,
        models=[], pools=[], nearest_nodes=[], reasons={},
    )  # fmt: skip
    return WorkloadObserved(
        cluster=cluster, namespace=key.namespace, observed_at=moment,
        workload=Owner(kind=key.kind.partition(".")[0], name=key.name, api_version=_find_version(objects, key)),
        problem=ObjectProblem(reason=code, message=english, at=moment),
        wait=wait, queue=unmade.queue, created_at=unmade.created_at, pods=unmade.pods,
    )  # fmt: skip

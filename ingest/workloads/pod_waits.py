"""Waiting pods, looked at again when what their obstacle rests on changes, and at a slow pace otherwise.

The reader observes a pod when the pod itself changes. What holds it begins, changes or ends without that: a claim is
made, a member of its group comes, its queue has room. Each look diagnoses the pod on all objects around it, except the
nodes, on which its attempts have the verdicts, unless the last one was read too late, or before the objects, for that.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Final, Protocol

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.tree import find_main_obstacle
from engine.diagnosis.waiting import derive_wait_by_objects, derive_wait_on_nodes
from engine.snapshot.case_objects import Key
from ingest.readers.kube.objects import observe_pod
from ingest.readers.kube.reader import CONDITION_SECONDS
from ingest.readers.kube.refusal_judge import MAX_AGE
from ingest.workloads.object_store import WorkloadObjects
from ingest.workloads.pod_store import StoredPod
from runtime.kubernetes.object_fields import get_text
from schemas.events import DEFAULT_CLUSTER, Event, PodObserved, PodWait


class WaitingPodJudge(Protocol):
    """Judge of waiting pods on all nodes: ``ingest.readers.kube.refusal_judge.RefusalJudge``."""

    def is_settled(self, namespace: str, name: str, decided_at: datetime) -> bool:
        """Tell whether the record of a pod's decision at this time has verdicts, or needs none."""
        ...

    def find_obstacle(self, namespace: str, name: str, now: datetime) -> FoundObstacle | None:
        """Find what keeps a waiting pod from all nodes."""
        ...


SETTLE_SECONDS: Final = 3.0
"""Age from which a pod is looked at: its scheduler and the other members of its group come a moment after it."""
LOOK_SECONDS: Final = 300.0
"""Time after which a pod is looked at again although nothing that it mentions has changed."""
REPEAT_SECONDS: Final = 600.0
"""Time after which the same obstacle is published again, for readers that have forgotten it."""
ATTEMPT_SECONDS: Final = 60.0
"""Time after which it is published again because a later attempt says something else."""
JUDGED_SECONDS: Final = MAX_AGE.total_seconds() + 2 * CONDITION_SECONDS
"""Age of a decision from which the reader does not judge it any more."""
TURN_SECONDS: Final = 0.05
"""Time for diagnoses in one turn: the watches share the event loop."""
_PASS_SECONDS: Final = 3.0
_OF_ATTEMPTS: Final = "nodes"
"""Layer of which a pod's attempts say more."""
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class _Look:
    """The latest look at a pod. ``wait``: the obstacle as published, None where its attempts say how it waits."""

    uid: str
    seen_at: float
    seen: datetime
    """Time of the first look."""
    due_at: float = float("inf")
    """Time of the next look, unless something concerns the pod before."""
    wait: PodWait | None = None
    published_at: float = float("-inf")
    observed_at: datetime | None = None
    """Time of the published observation."""


class PodWaitObserver:
    """Finds what holds the waiting pods. ``now`` is in seconds on any clock that never goes back."""

    def __init__(
        self,
        objects: WorkloadObjects,
        cluster: str = DEFAULT_CLUSTER,
        labels: Collection[str] = (),
        judge: WaitingPodJudge | None = None,
    ) -> None:
        """Start without pods.

        ``labels``: labels of pods that observations have. ``judge``: of the pods whose attempts have no verdicts.
        """
        self._objects, self._pods = objects, objects.pods
        self._judge = judge
        self._cluster, self._labels = cluster, labels
        self._looks: dict[Key, _Look] = {}
        self._due: dict[Key, None] = {}
        self._passed_at = float("-inf")

    def observe(self, moment: datetime, now: float) -> list[PodObserved]:
        """Observe the pods whose obstacle has changed, as far as the turn's time goes."""
        self._note_changed(moment, now)
        if now - self._passed_at >= _PASS_SECONDS:
            self._note_old(now)
        events: list[PodObserved] = []
        end = monotonic() + TURN_SECONDS
        while self._due and monotonic() < end:
            key = next(iter(self._due))
            del self._due[key]
            if pod := self._pods.waiting.get(key):
                events += self._look(key, pod, self._looks[key], moment, now)
        return events

    def describe(self, event: Event) -> Event:
        """Add to an observation of a waiting pod what held it at the latest look."""
        if not isinstance(event, PodObserved) or event.node or event.deleted or event.phase != "Pending":
            return event
        look = self._looks.get((event.pod.namespace, event.pod.name))
        if look is None or look.wait is None or look.uid != event.pod.uid:
            return event
        return event.model_copy(update={"wait": look.wait})

    def _note_changed(self, moment: datetime, now: float) -> None:
        """Note the pods that something has concerned, once they are old enough."""
        young = set()
        for key in sorted(self._pods.changed):
            uid = get_text(self._pods.waiting[key].fields, "metadata", "uid")
            look = self._looks.get(key)
            if look is None or look.uid != uid:
                look = self._looks[key] = _Look(uid, now, moment)
            if now - look.seen_at < SETTLE_SECONDS:
                young.add(key)
            else:
                self._due[key] = None
        self._pods.changed = young

    def _note_old(self, now: float) -> None:
        """Note the pods that were looked at long ago, and forget those that no longer wait."""
        self._passed_at = now
        self._looks = {key: look for key, look in self._looks.items() if key in self._pods.waiting}
        self._due |= dict.fromkeys(key for key, look in self._looks.items() if now >= look.due_at)

    def _look(self, key: Key, pod: StoredPod, look: _Look, moment: datetime, now: float) -> Iterator[PodObserved]:
        """Look at a pod, and observe it if its obstacle is not the published one."""
        look.due_at = now + LOOK_SECONDS
        facts = CaseFacts(self._objects.build_pod_case(key, pod), moment).build(*key)
        wait = derive_wait_by_objects(facts)
        if wait.layer in ("", _OF_ATTEMPTS):
            held = self._judge_nodes(key, pod, look, facts, now)
        else:
            held = wait if _is_held(wait, pod, facts) else None
        if held is None and look.wait is None:
            return
        if held is not None and not _is_due(look, held, pod, now):
            return
        look.wait = held
        is_recorded = bool(pod.decided_at and look.observed_at and pod.decided_at > look.observed_at)
        # Where nothing holds the pod any more, the record of a later attempt takes the place of the obstacle.
        if held is not None or not is_recorded:
            yield from self._observe(pod, look, held or wait, now)

    def _judge_nodes(self, key: Key, pod: StoredPod, look: _Look, facts: DiagnosisFacts, now: float) -> PodWait | None:
        """Judge a pod whose attempt was read too late, or before the objects, for verdicts; None where it has them."""
        decided_at = pod.decided_at
        if self._judge is None or decided_at is None or facts.pod is None or facts.pod.gates:
            return None
        if self._judge.is_settled(*key, decided_at):
            return None
        to_be_judged = JUDGED_SECONDS - (facts.now - decided_at).total_seconds()
        if to_be_judged > 0 and look.seen - decided_at <= MAX_AGE:
            look.due_at = min(look.due_at, now + to_be_judged)
            return None
        obstacle = self._judge.find_obstacle(*key, facts.now)
        return derive_wait_on_nodes(facts, obstacle) if obstacle else None

    def _observe(self, pod: StoredPod, look: _Look, wait: PodWait, now: float) -> Iterator[PodObserved]:
        look.published_at = now
        # Later than everything that was looked at, by the clocks of the cluster: the index keeps the latest state.
        look.observed_at = max(time for time in (pod.latest_at, look.observed_at) if time) + _MICROSECOND
        if observed := observe_pod(pod.fields, self._cluster, self._labels):
            yield observed.model_copy(update={"observed_at": look.observed_at, "wait": wait})


def _is_held(wait: PodWait, pod: StoredPod, facts: DiagnosisFacts) -> bool:
    """Tell whether something holds the pod that its attempts do not tell of."""
    worded = find_main_obstacle(_reduce_to_words(facts)) if pod.is_tried else None
    return worded is None or worded.code != wait.code


def _reduce_to_words(facts: DiagnosisFacts) -> DiagnosisFacts:
    """Reduce the facts to those of an attempt: the scheduler's words, without the pod's marks and other objects."""
    pod = facts.pod._replace(labels={}, annotations={}, spec=None, owners=()) if facts.pod else None
    return replace(facts, pod=pod, objects=None, claims=None)


def _is_due(look: _Look, wait: PodWait, pod: StoredPod, now: float) -> bool:
    """Tell whether an obstacle is to be published: it is another one, or readers may have forgotten it."""
    age = now - look.published_at
    is_replaced = bool(pod.decided_at and look.observed_at and pod.decided_at > look.observed_at)
    return look.wait != wait or age >= REPEAT_SECONDS or (is_replaced and age >= ATTEMPT_SECONDS)

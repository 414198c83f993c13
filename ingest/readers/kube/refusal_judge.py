"""Judges refused pods on the cluster as it was when the refusal was read; pods that are equal to the judge only once.

A refusal is read some time after its attempt, so only a recent one is judged: the objects of an hour ago are gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from engine.cases.refused_pods import assume_pods, judge_refused_pod
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot import kinds
from engine.snapshot.snapshot import Snapshot
from ingest.readers.kube.judged_objects import ClusterMoment, JudgedObjects
from ingest.readers.kube.judged_records import JudgedRefusal, build_refusal
from ingest.readers.kube.scheduling_events import SchedulingEvent
from runtime.bounded_cache import BoundedCache
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

MAX_AGE: Final = timedelta(seconds=30)
"""Age of a refusal beyond which the objects are not those of its attempt."""
MAX_MOMENTS: Final = 64
"""Limit of the moments that refusals wait with; of more, the oldest refusals are not judged."""
MAX_REFUSALS: Final = 10_000
_MAX_JUDGED: Final = 64
_LATER_CONDITION: Final = timedelta(seconds=1)
"""Time by which a pod's condition may be later than the event about the same refusal."""
_ORDINALS: Final = frozenset(
    ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index")
)
"""Labels that number the pods of one owner; nothing but the pods' own constraints selects by them."""

Clock = Callable[[], datetime]


def _read_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Refusal:
    moment: ClusterMoment
    pod: Json
    siblings: tuple[Json, ...]
    """Other waiting pods of its group."""


class RefusalJudge:
    """Judges refusals that were noted, each at most once."""

    def __init__(self, objects: JudgedObjects, clock: Clock = _read_clock) -> None:
        """Judge on these objects. ``clock``: for the age of a refusal."""
        self._objects, self._clock = objects, clock
        self._refusals: BoundedCache[tuple[str, datetime], _Refusal] = BoundedCache(MAX_REFUSALS)
        self._judged: BoundedCache[bytes, JudgedRefusal | None] = BoundedCache(_MAX_JUDGED)
        self._settled_at: BoundedCache[tuple[str, str], datetime] = BoundedCache(MAX_REFUSALS)
        """By pod, the time of the latest refusal whose record says all."""

    def note_refusal(self, refusal: SchedulingEvent) -> None:
        """Note the cluster at the time at which a refusal is read, unless the objects are not those of its attempt."""
        if noted := self._take_refusal(refusal):
            self._refusals.put((str(refusal.pod), refusal.time), noted)
            self._forget_before(noted.moment.revision - MAX_MOMENTS)

    def _take_refusal(self, refusal: SchedulingEvent) -> _Refusal | None:
        pod = self._objects.find_waiting(refusal.pod.namespace, refusal.pod.name)
        is_other = bool(pod and refusal.pod.uid and get_text(pod, "metadata", "uid") != refusal.pod.uid)
        if pod is None or is_other or self._objects.find_problem() or self._clock() - refusal.time > MAX_AGE:
            return None
        return _Refusal(self._objects.take_moment(), pod, tuple(self._objects.list_siblings(pod)))

    def _forget_before(self, revision: int) -> None:
        for key in list(self._refusals):
            refusal = self._refusals.get(key)
            if refusal and refusal.moment.revision > revision:
                return
            self._refusals.pop(key)

    def judge(self, refusal: SchedulingEvent, counts: Mapping[str, int], message: str) -> JudgedRefusal | None:
        """Judge the pod of a refusal; None if it was not noted and cannot be noted now.

        A gang is tried as a whole: if the scheduler's ``counts`` are those of the nodes next to the other members, each
        on the first node that takes it, the verdicts are these. Counts that differ are compared once more with the
        objects of now.
        """
        # The watches of pods and objects run side by side with that of events, which may be the first to tell of a pod.
        noted = self._refusals.pop((str(refusal.pod), refusal.time)) or self._take_refusal(refusal)
        judged = self._judge_gang(noted, refusal.time, counts, message) if noted else None
        if noted is None or judged is None:
            return None
        self.settle(refusal)
        if judged.is_proved_by(counts, message):
            return judged
        # What the scheduler knew may have been read after its refusal: a claim, a device, the bind of the pod before.
        later = self._take_refusal(refusal)
        if later is None or (later.moment.revision, later.pod) == (noted.moment.revision, noted.pod):
            return judged
        judged_later = self._judge_gang(later, refusal.time, counts, message)
        return judged_later if judged_later and judged_later.is_proved_by(counts, message) else judged

    def settle(self, refusal: SchedulingEvent) -> None:
        """Note a refusal whose record says all: it has verdicts, or its scheduler looked at no node."""
        self._settled_at.put((refusal.pod.namespace, refusal.pod.name), refusal.time)

    def is_settled(self, namespace: str, name: str, decided_at: datetime) -> bool:
        """Tell whether the record of a waiting pod's decision at this time says all."""
        settled_at = self._settled_at.get((namespace, name))
        return settled_at is not None and decided_at <= settled_at + _LATER_CONDITION

    def find_obstacle(self, namespace: str, name: str, now: datetime) -> FoundObstacle | None:
        """Find what keeps a waiting pod from all nodes now; None if a node takes it, or if it can't be judged."""
        pod = self._objects.find_waiting(namespace, name)
        if pod is None or self._objects.find_problem():
            return None
        judged = self._judge(_Refusal(self._objects.take_moment(), pod, ()), now, ())
        return judged.verdicts.obstacle if judged and not judged.verdicts.missing_kinds else None

    def _judge_gang(
        self, refusal: _Refusal, now: datetime, counts: Mapping[str, int], message: str
    ) -> JudgedRefusal | None:
        """Judge the pod by itself, and next to its siblings where only that is what the scheduler counted."""
        judged = self._judge(refusal, now, ())
        if judged is None or not refusal.siblings or judged.is_proved_by(counts, message):
            return judged
        together = self._judge(refusal, now, refusal.siblings)
        return together if together and together.is_proved_by(counts, message) else judged

    def _judge(self, refusal: _Refusal, now: datetime, siblings: Sequence[Json]) -> JudgedRefusal | None:
        key = _derive_key(refusal, siblings)
        if key not in self._judged:
            cluster = assume_pods(self._objects.collect(refusal.moment), siblings)
            verdicts = judge_refused_pod(cluster, refusal.pod, now)
            self._judged.put(key, build_refusal(verdicts, refusal.pod) if verdicts else None)
        return self._judged.get(key)


def _derive_key(refusal: _Refusal, siblings: Sequence[Json]) -> bytes:
    """Derive a key that two pods share if the judge cannot tell them apart at one moment."""
    pod = refusal.pod
    spec, labels = get_object(pod, "spec"), get_object(pod, "metadata", "labels")
    shared_labels = {name: value for name, value in labels.items() if name not in _ORDINALS}
    claims = list(_iterate_claims(pod, refusal.moment.snapshot))
    # `judged_fields` leaves only those annotations that KAI reads, and the name of a group.
    annotations = get_object(pod, "metadata", "annotations")
    names = [get_text(sibling, "metadata", "name") for sibling in siblings]
    parts = [refusal.moment.revision, get_text(pod, "metadata", "namespace"), spec, shared_labels, annotations, claims]
    parts.append(names)
    is_named = get_text(pod, "status", "nominatedNodeName") or any("ephemeral" in entry for entry in _list_volumes(pod))
    return orjson.dumps([*parts, get_text(pod, "metadata", "name") if is_named else ""], option=orjson.OPT_SORT_KEYS)


def _list_volumes(pod: Json) -> list[Mapping[str, Any]]:
    return list(iterate_objects(pod, "spec", "volumes"))


def _iterate_claims(pod: Json, snapshot: Snapshot) -> Iterator[Any]:
    """Iterate over the differences between the claims of two pods: names, or requests of own claims without devices."""
    namespace, uid = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "uid")
    claims = snapshot.get_objects(kinds.RESOURCE_CLAIM)
    for status in iterate_objects(pod, "status", "resourceClaimStatuses"):
        name = get_text(status, "resourceClaimName")
        claim = claims.get((namespace, name), {})
        is_own = any(owner.get("uid") == uid for owner in iterate_objects(claim, "metadata", "ownerReferences"))
        is_plain = is_own and not get_object(claim, "status") and "deletionTimestamp" not in claim["metadata"]
        yield [get_text(status, "name"), claim["spec"] if is_plain else name]
    if "extendedResourceClaimStatus" in get_object(pod, "status"):
        yield get_text(pod, "metadata", "name")

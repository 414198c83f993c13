"""Time line of a workload: the moments of its objects and of all its pods, each event once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from engine.cases.workload_words import HOLDERS, KUEUE_WORKLOAD
from engine.cases.workloads import CaseWorkload
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.objects import to_observed_pod
from engine.diagnosis.timeline import ORDER, Moment, list_moments, list_object_moments, list_workload_moments
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import Fields, get_text, parse_moment
from runtime.kubernetes.resources import PODS, Key
from schemas.answers.diagnosis import TimelineEvent
from schemas.answers.workloads import TimelineStage
from schemas.codec.records import format_rfc3339
from schemas.events import DEFAULT_CLUSTER, AttemptSummarized

_OF_OBJECTS: Final = frozenset(("owner created", "queued", "evicted", "quota reserved", "admitted"))
"""Events of the workload's objects, which the moments of every pod repeat."""


class _Stage(NamedTuple):
    """An event with the times of all objects that it happened to."""

    event: TimelineEvent
    times: Mapping[str, datetime]
    """By the object's name."""

    @property
    def first(self) -> datetime:
        return min(self.times.values())


def build_workload_timeline(
    objects: CaseObjects,
    family: Iterable[CaseWorkload],
    pods: Iterable[Fields],
    attempts: Mapping[str, AttemptSummarized],
    now: datetime,
) -> list[TimelineStage]:
    """Build the time line. ``attempts``: the latest recorded one of pods, by ``namespace/name``."""
    moments = [
        *_iterate_object_moments(objects, family),
        *(entry for pod in pods for entry in _iterate_pod_moments(objects, pod, attempts, now)),
    ]
    times: dict[TimelineEvent, dict[str, datetime]] = {}
    for subject, moment in moments:
        by_subject = times.setdefault(moment.event, {})
        by_subject[subject] = min(by_subject.get(subject, moment.time), moment.time)
    return _to_answers([_Stage(event, times[event]) for event in ORDER if event in times])


def _iterate_object_moments(objects: CaseObjects, family: Iterable[CaseWorkload]) -> Iterator[tuple[str, Moment]]:
    for key in family:
        entry = objects.find(key.kind, key.name, key.namespace)
        if entry is None:
            continue
        if key.kind == KUEUE_WORKLOAD:
            moments = list(list_workload_moments(objects, entry))
        elif key.kind in HOLDERS:
            created = parse_moment(get_text(entry, "metadata", "creationTimestamp"))
            moments = [Moment("queued", created, str(key))] if created else []
        else:
            moments = list(list_object_moments(objects, key.kind.partition(".")[0], key.name, key.namespace))
        yield from ((str(key), moment) for moment in moments)


def _iterate_pod_moments(
    objects: CaseObjects, pod: Fields, attempts: Mapping[str, AttemptSummarized], now: datetime
) -> Iterator[tuple[str, Moment]]:
    namespace, name = get_text(pod, "metadata", "namespace") or "default", get_text(pod, "metadata", "name")
    observed = to_observed_pod(pod, PODS.build_object_path(Key(namespace, name)), now)
    attempt = attempts.get(f"{namespace}/{name}")
    facts = DiagnosisFacts(DEFAULT_CLUSTER, namespace, name, now, attempt, pod=observed, objects=objects)
    yield from ((f"Pod/{name}", moment) for moment in list_moments(facts) if moment.event not in _OF_OBJECTS)


def _to_answers(stages: Sequence[_Stage]) -> list[TimelineStage]:
    # Within a second, the order of the layers is more certain than that of the times.
    ordered = sorted(stages, key=lambda stage: (stage.first.replace(microsecond=0), ORDER.index(stage.event)))
    before = [None, *(stage.first for stage in ordered)]
    return [_to_answer(stage, previous) for stage, previous in zip(ordered, before, strict=False)]


def _to_answer(stage: _Stage, before: datetime | None) -> TimelineStage:
    subject = min(stage.times, key=lambda name: (stage.times[name], name))
    return TimelineStage(
        event=stage.event,
        at=format_rfc3339(stage.first),
        last_at=format_rfc3339(max(stage.times.values())),
        after_seconds=round(max((stage.first - before).total_seconds(), 0.0), 3) if before else None,
        subject=subject,
        count=len(stage.times),
    )

"""The event by which a scheduler of queues took a pod's place: on the pod, or on its group as KAI writes it."""

from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement, iterate_events
from engine.diagnosis.reclaimed_places import is_reclaim_by_yunikorn, names_pod

_EVICTED: Final = "Evict"
_OF_YUNIKORN: Final = "Informational"


def find_reclaim(facts: DiagnosisFacts) -> Statement | None:
    """Find the event of the scheduler that took the pod's place for a queue or a group; None if there is none."""
    for event in iterate_events(facts, _EVICTED, _OF_YUNIKORN):
        if event.reason == _EVICTED or is_reclaim_by_yunikorn(event.text):
            return event
    return next(_iterate_events_of_groups(facts), None)


def _iterate_events_of_groups(facts: DiagnosisFacts) -> Iterator[Statement]:
    """Iterate over the evictions of the pod that KAI has written on groups, those of one group the latest first."""
    objects = facts.objects
    if objects is None:
        return
    for namespace, name in objects.list_event_subjects("PodGroup"):
        for event in objects.select_events("PodGroup", name, namespace) if namespace == facts.namespace else ():
            if event.reason == _EVICTED and names_pod(event.note, facts.namespace, facts.name):
                path = f"PodGroup {namespace}/{name}"
                words = f"{event.reason}: {event.note}"
                yield Statement(event.note, Evidence("event", path, event.time, event.reporter, words=words), _EVICTED)

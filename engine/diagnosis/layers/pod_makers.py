"""The object that makes a pod: how many pods it makes, and the words with which the API server refused one."""

import re
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from runtime.kubernetes.object_fields import Fields, get_object, iterate_objects

REFUSALS: Final = ("FailedCreate", "FailedCreatePod")
"""Reasons of events about an object that could not make a pod."""
_STATUS_ERROR: Final = re.compile(r'Message:"((?:[^"\\]|\\.)*)"')
"""Text of the API server within an error that Volcano's controller prints as Go does."""


class PodMaker(NamedTuple):
    """Owner of a pod. ``name``: with its kind, such as ``Job/train``."""

    name: str
    replicas: int = 0
    """Number of pods that it makes; 0 if not known."""
    refusal: str = ""
    """Words with which a pod was refused; empty for none."""


def find_maker(facts: DiagnosisFacts) -> PodMaker | None:
    """Find the owner of the pod; None for a pod without one, or if no object was read."""
    if facts.objects is None or facts.pod is None or not facts.pod.owners:
        return None
    kind, _, name = facts.pod.owners[0].partition("/")
    entry = next(
        (
            entry
            for table in facts.objects.tables
            if table.partition(".")[0] == kind and (entry := facts.objects.find(table, name, facts.namespace))
        ),
        None,
    )
    events = facts.objects.select_events(kind, name, facts.namespace)
    refusal = next((extract_refusal(event.note) for event in events if event.reason in REFUSALS), "")
    return PodMaker(f"{kind}/{name}", _count_replicas(entry), refusal)


def extract_refusal(note: str) -> str:
    """Extract the text of the API server from the note of an event."""
    match = _STATUS_ERROR.search(note)
    return match[1].replace('\\"', '"') if match else note


def _count_replicas(entry: Fields | None) -> int:
    """Count the pods that a Job, a Job of Volcano or a set of replicas makes."""
    spec = get_object(entry, "spec")
    tasks = list(iterate_objects(spec, "tasks"))
    counts = [task.get("replicas", 1) for task in tasks] or [spec.get("parallelism", spec.get("replicas", 0))]
    return sum(count for count in counts if isinstance(count, int))

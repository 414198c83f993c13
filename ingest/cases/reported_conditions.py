"""Words about pods in the conditions of objects that own them: an operator repeats what a scheduler or a quota wrote.

They are read where no pod of the object was given. Words of a scheduler are about a pod, which is built with the name
of the object; words with which the API server refused a pod are about the object itself.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from engine.diagnosis.layers.pod_makers import REFUSALS
from engine.snapshot import kinds
from ingest.cases.descriptions import build_event
from ingest.cases.event_subjects import build_waiting_pod, get_namespace
from ingest.cases.stated_sentences import PastedEvent, find_sentence
from runtime.kubernetes.object_fields import get_text, iterate_objects, list_conditions, parse_moment
from schemas.events import Condition
from schemas.json_types import Json

_KAI_GROUP: Final = "PodGroup.scheduling.run.ai"
_EXPLAINED: Final = frozenset(
    (
        kinds.POD, kinds.NODE, "Event", "Event.events.k8s.io", "Workload.kueue.x-k8s.io",
        "Deployment.apps", "ReplicaSet.apps", "PodGroup.scheduling.volcano.sh",
    )
)  # fmt: skip
"""Kinds whose conditions the diagnosis reads itself."""


def build_reported(objects: Sequence[Any], read_at: datetime) -> list[Json]:
    """Build the events, and the pods that they are about, which conditions of other objects repeat."""
    entries = [entry for entry in objects if isinstance(entry, Mapping) and get_text(entry, "kind")]
    pods = [entry for entry in entries if get_text(entry, "kind") == kinds.POD]
    reported: list[Json] = []
    present = {(get_namespace(pod), get_text(pod, "metadata", "name")) for pod in pods}
    for entry in entries:
        kind = kinds.identify(get_text(entry, "apiVersion"), get_text(entry, "kind"))
        if kind == _KAI_GROUP:
            reported += _build_of_group(entry, present, read_at)
        elif kind not in _EXPLAINED and not _has_pod(entry, pods):
            reported += _build_of_object(entry, read_at)
    return reported


def _has_pod(entry: Mapping[str, Any], pods: Iterable[Any]) -> bool:
    """Tell whether a pod is there whose name begins with that of the object."""
    name = get_text(entry, "metadata", "name")
    return any(
        get_namespace(pod) == get_namespace(entry) and get_text(pod, "metadata", "name").startswith(name)
        for pod in pods
    )


def _build_of_object(entry: Mapping[str, Any], read_at: datetime) -> Iterator[Json]:
    stated = next((pair for condition in list_conditions(entry) if (pair := _read_condition(condition))), None)
    if stated is None:
        return
    condition, event = stated
    namespace, name = get_namespace(entry), get_text(entry, "metadata", "name")
    is_refusal = event.reason in REFUSALS
    kind = get_text(entry, "kind") if is_refusal else kinds.POD
    yield _build_event(
        replace(event, kind=kind, namespace=namespace, name=name), condition.last_transition_at or read_at
    )
    if not is_refusal:
        yield build_waiting_pod(namespace, name, [event])


def _build_event(event: PastedEvent, time: datetime) -> Json:
    involved = {"kind": event.kind, "namespace": event.namespace, "name": event.name}
    return build_event("Warning", event.reason, "0s", event.reporter, event.note, involved, time)


def _build_of_group(group: Any, present: Collection[tuple[str, str]], read_at: datetime) -> Iterator[Json]:
    """Build the pods that the conditions of KAI's group name and that were not given."""
    for condition in iterate_objects(group, "status", "schedulingConditions"):
        event = find_sentence(get_text(condition, "message").strip(), is_quotation=True)
        if event is None or not event.name or (event.namespace, event.name) in present:
            continue
        yield _build_event(event, parse_moment(get_text(condition, "lastTransitionTime")) or read_at)
        yield build_waiting_pod(event.namespace, event.name, [event])


def _read_condition(condition: Condition) -> tuple[Condition, PastedEvent] | None:
    event = find_sentence(condition.message, is_quotation=True)
    return (condition, event) if event and event.is_warning else None

"""The documents of what was observed of pods, nodes, workloads and schedulers."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from ..codec.records import Rejected, format_rfc3339, read
from ..events import (
    Condition,
    NodeChecked,
    NodeEvent,
    NodeObserved,
    NodeRegistered,
    PodObserved,
    SchedulerObserved,
    WorkloadObserved,
)

Observed: TypeAlias = PodObserved | NodeObserved | NodeRegistered | NodeChecked | WorkloadObserved | SchedulerObserved

OBSERVATION_KINDS: Final[dict[str, type[Observed]]] = {
    "pod-observed": PodObserved,
    "node-observed": NodeObserved,
    "node-registered": NodeRegistered,
    "node-checked": NodeChecked,
    "workload-observed": WorkloadObserved,
    "scheduler-observed": SchedulerObserved,
}


def find_observation_kind(event: Observed) -> str:
    # The exact type, because all of them share base classes.
    return next(name for name, kind in OBSERVATION_KINDS.items() if type(event) is kind)


def build_observation_document(event: Observed, digest: str) -> dict[str, Any]:
    """Build the document of an observation; its id is the event's id. ``digest`` is equal for two with the same
    content."""
    text = " ".join(word for word in (event.key, *_list_words(event)) if word)
    head = {
        "@timestamp": format_rfc3339(event.observed_at),
        "kind": find_observation_kind(event),
        "cluster": event.cluster,
    }
    return head | _build_subject(event) | {"digest": digest, "text": text, "event": event}


def _build_subject(event: Observed) -> dict[str, Any]:
    """Select the fields by which searches find it."""
    match event:
        case PodObserved():
            return _build_pod_subject(event)
        case WorkloadObserved():
            subject = {"namespace": event.namespace, "workload": str(event.workload)}
            return subject | {"problems": [event.problem.reason]}
        case SchedulerObserved():
            subject = {"scheduler": event.scheduler, "instance": event.instance}
            return subject | {"settings_digest": event.settings_digest}
        case _:
            return _build_node_subject(event)


def _build_pod_subject(event: PodObserved) -> dict[str, Any]:
    pod = event.pod
    return {
        "namespace": pod.namespace,
        "pod": pod.name,
        "pod_uid": pod.uid,
        "node": event.node,
        "phase": event.phase,
        "workload": (event.description.workload if event.description else "") or None,
        "devices": list(dict.fromkeys(allocation.uuid for allocation in event.allocations)),
        "problems": [problem.reason for problem in event.problems],
    }


def _build_node_subject(event: NodeEvent) -> dict[str, Any]:
    devices = event.uuid if isinstance(event, NodeRegistered) else []
    problems = [problem.code for problem in event.problems] if isinstance(event, NodeChecked) else []
    return {"node": event.node, "scheduler": event.scheduler, "devices": devices, "problems": problems}


def _list_words(event: Observed) -> list[str]:
    """Select the words of free-text search."""
    match event:
        case NodeRegistered():
            return [event.cause, *sorted(set(event.model)), *event.uuid]
        case NodeChecked():
            return [word for problem in event.problems for word in (problem.code, problem.vendor, problem.message)]
        case WorkloadObserved():
            return [event.problem.reason, event.problem.message, event.problem.reported_by]
        case SchedulerObserved():
            return [event.implementation, event.version, *(f"{name}={text}" for name, text in event.settings.items())]
        case PodObserved():
            ended = "deleted" if event.deleted else ""
            problems = [word for problem in event.problems for word in (problem.reason, problem.message)]
            return [
                event.node,
                event.phase,
                ended,
                event.bind_phase,
                *_list_condition_words(event.conditions),
                *problems,
            ]
        case _:
            return _list_condition_words(event.conditions)


def _list_condition_words(conditions: Iterable[Condition]) -> list[str]:
    return [
        word
        for condition in conditions
        for word in (condition.type, condition.status, condition.reason, condition.message)
    ]


def read_observation(document: dict[str, Any]) -> Observed | Rejected:
    """Read the event of a document of the observations index (its ``_source``)."""
    kind = OBSERVATION_KINDS.get(str(document.get("kind")))
    if kind is None:
        return Rejected(f"no kind of observation is called {document.get('kind')!r:.100}", "document.kind")
    return read(kind, document.get("event"), "document.event")

"""The document of a pod's latest state: does it wait, since when, and what did its latest attempt refuse nodes for?

The process that learns of a later fact writes the whole document again. Its version is the time of the fact, so the
index keeps the latest one whatever the order in which attempts and observations are read, and however often. A document
that says that a pod no longer waits stays until the retention: an older fact that is read later must not bring the pod
back.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

from ..codec.records import format_rfc3339
from ..events import (
    AttemptRepeated,
    AttemptSummarized,
    PodDescription,
    PodObserved,
    PodRef,
    PodWait,
    WorkloadObserved,
)
from ..events.base import build_pod_key
from ..ids import count_microseconds
from .attempts import build_attempt_fields, build_description_fields, list_reasons

WAITING: Final = "waiting"
PLACED: Final = "placed"
ENDED: Final = "ended"
DELETED: Final = "deleted"

_RANKS: Final = {"pending": 0, "failed": 1, "succeeded": 2}
"""Ranks of facts about an attempt; later knowledge has the greater rank."""
_OBSERVED: Final = 3
"""An observation at the very time of an attempt is what became of it."""
_ENDED_PHASES: Final = ("Succeeded", "Failed")


class PodStateDocument(NamedTuple):
    id: str
    """The pods of one name share it: the latest one counts, and a log may name no UID."""
    version: int
    fields: dict[str, Any]


def derive_state_after_attempt(event: AttemptSummarized | AttemptRepeated) -> PodStateDocument:
    """Derive the pod's state after its attempt."""
    description = event.description
    first = event.first_judged_at or event.episode_started_at or event.started_at
    fields = build_attempt_fields(event) | {
        "state": PLACED if event.status == "succeeded" else WAITING,
        "status": event.status,
        "reasons": event.reasons if isinstance(event, AttemptRepeated) else list_reasons(event),
        **build_description_fields(description),
        "group": _group(event.pod, description),
        "created_at": format_rfc3339(description.created_at) if description and description.created_at else None,
        "first_judged_at": format_rfc3339(first),
        "attempts": event.attempts or None,
        "priority": description.priority if description else None,
        **(_wait_fields(event.wait, first) if event.wait else {}),
    }
    version = derive_attempt_version(count_microseconds(event.started_at), event.status)
    return PodStateDocument(build_pod_key(event.cluster, event.pod), version, fields)


def derive_attempt_version(started_microseconds: int, status: str) -> int:
    """Derive the version of a pod's state after an attempt."""
    return started_microseconds * 4 + _RANKS[status]


def _wait_fields(wait: PodWait, first_judged_at: datetime) -> dict[str, Any]:
    return {
        "obstacle": wait.code or None,
        "obstacle_group": f"{wait.code}|{describe_request(wait)}",
        "layer": wait.layer or None,
        "models": wait.models,
        "pools": wait.pools,
        "asked_devices": wait.devices,
        # With the sums of both over many pods: how long their devices have been waited for at any time.
        "asked_devices_seconds": wait.devices * first_judged_at.timestamp(),
        "wait": wait,
    }


def describe_request(wait: PodWait) -> str:
    """Describe the request of a pod, such as ``2 x 40,000 MiB, 30 % of cores``; equal for pods with equal requests."""
    request = wait.asked
    if request is None:
        return f"{wait.devices} x device" if wait.devices else ""
    memory = f"{request.memory_mib:,} MiB" if request.memory_mib else f"{request.memory_percent or 100} % of memory"
    cores = f", {request.cores_percent} % of cores" if request.cores_percent else ""
    more = f" of {wait.devices}" if wait.devices != request.count else ""
    return f"{request.count}{more} x {memory}{cores}"


def derive_state_after_observation(event: PodObserved, wait: PodWait | None = None) -> PodStateDocument | None:
    """Derive the state of a pod from an observation; None where its attempts say how it waits.

    ``wait``: why the pod waits although no scheduler has tried it, or tries it again.
    """
    state = WAITING if wait else _derive_end(event)
    if not state:
        return None
    fields = {
        "@timestamp": format_rfc3339(event.observed_at),
        "cluster": event.cluster,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "state": state,
        **build_description_fields(event.description),
        **(_build_untried_fields(event, wait) if wait else {}),
    }
    return PodStateDocument(build_pod_key(event.cluster, event.pod), _derive_version(event, wait), fields)


def _derive_version(event: PodObserved, wait: PodWait | None) -> int:
    """Derive the version: a pod without a word of its scheduler waits since it was made, and every attempt is later.

    Whole seconds of Kubernetes may give its first attempt the time of its creation. What the objects around the pod say
    is as late as its observation.
    """
    is_silent = not any(condition.type == "PodScheduled" for condition in event.conditions)
    created = event.description.created_at if event.description else None
    if created and wait and is_silent and not (event.wait or event.node):
        return count_microseconds(min(created, event.observed_at)) * 4 - 1
    return count_microseconds(event.observed_at) * 4 + _OBSERVED


def _build_untried_fields(event: PodObserved, wait: PodWait) -> dict[str, Any]:
    """Build the fields of a pod that waits without an attempt: it waits since it was created."""
    description = event.description
    created = description.created_at if description else None
    return {
        "scheduler": event.scheduler,
        "status": "pending",
        "reasons": [],
        "group": _group(event.pod, description),
        "created_at": format_rfc3339(created) if created else None,
        "first_judged_at": format_rfc3339(created or event.observed_at),
        **_wait_fields(wait, created or event.observed_at),
    }


def name_workload(kind: str, name: str) -> str:
    """Name a workload in lists of pods as ``why`` takes it, such as ``job/train``: no pod has a slash in its name."""
    return f"{kind.lower()}/{name}"


def derive_state_of_workload(event: WorkloadObserved) -> PodStateDocument | None:
    """Derive the state of a workload without pods, a row among waiting pods; None for a report of its controller.

    The document has no ``pod_uid``, by which searches tell it from pods: it counts for some time only.
    """
    if event.wait is None and not event.is_over:
        return None
    name, created = name_workload(event.workload.kind, event.workload.name), event.created_at or event.observed_at
    fields = {
        "@timestamp": format_rfc3339(event.observed_at),
        "cluster": event.cluster,
        "namespace": event.namespace,
        "pod": name,
        "state": ENDED if event.is_over else WAITING,
        "workload": str(event.workload),
        "queue": event.queue or None,
        "scheduler": "",
        "status": "pending",
        "reasons": [event.wait.code] if event.wait and event.wait.code else [],
        "group": f"{event.namespace}/{event.workload}",
        "created_at": format_rfc3339(created),
        "first_judged_at": format_rfc3339(created),
        **(_wait_fields(event.wait, created) if event.wait else {}),
    }
    version = count_microseconds(event.observed_at) * 4 + _OBSERVED
    return PodStateDocument(f"{event.cluster}/{event.namespace}/{name}", version, fields)


def _derive_end(event: PodObserved) -> str:
    if event.deleted:
        return DELETED
    if event.phase in _ENDED_PHASES:
        return ENDED
    return PLACED if event.node else ""


def _group(pod: PodRef, description: PodDescription | None) -> str:
    """Build the key of a group, with the namespace: two namespaces may have workloads of one name. No name of
    Kubernetes has a slash."""
    workload = description.workload if description else ""
    return f"{pod.namespace}/{workload or f'Pod/{pod.name}'}"

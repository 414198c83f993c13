"""The documents of what was observed of pods and nodes."""

from typing import Any, Final, TypeAlias

from schemas.codec.records import Rejected, read, rfc3339
from schemas.events import (
    NodeChecked,
    NodeEvent,
    NodeObserved,
    NodeRegistered,
    PodObserved,
)

Observed: TypeAlias = PodObserved | NodeObserved | NodeRegistered | NodeChecked

OBSERVATION_KINDS: Final[dict[str, type[Observed]]] = {
    "pod-observed": PodObserved,
    "node-observed": NodeObserved,
    "node-registered": NodeRegistered,
    "node-checked": NodeChecked,
}


def observation_kind(event: Observed) -> str:
    # The exact type, because all of them share base classes.
    return next(name for name, kind in OBSERVATION_KINDS.items() if type(event) is kind)


def observation_document(event: Observed, digest: str) -> dict[str, Any]:
    """The document of an observation; its id is the event's id. ``digest`` is equal for two that say the same."""
    about = _about_node(event) if isinstance(event, NodeEvent) else _about_pod(event)
    # Without the cluster, which is a field of its own and would be found with everything in it.
    name = event.key.partition("/")[2]
    text = " ".join(word for word in (name, *_words(event)) if word)
    head = {"@timestamp": rfc3339(event.observed_at), "kind": observation_kind(event)}
    head |= {"cluster": event.cluster, "node": event.node}
    return head | about | {"digest": digest, "text": text, "event": event}


def _about_pod(event: PodObserved) -> dict[str, Any]:
    pod = event.pod
    return {"namespace": pod.namespace, "pod": pod.name, "pod_uid": pod.uid, "phase": event.phase}


def _about_node(event: NodeEvent) -> dict[str, Any]:
    devices = event.uuid if isinstance(event, NodeRegistered) else []
    problems = [each.code for each in event.problems] if isinstance(event, NodeChecked) else []
    return {"scheduler": event.scheduler, "devices": devices, "problems": problems}


def _words(event: Observed) -> list[str]:
    """What free-text search looks at."""
    if isinstance(event, NodeRegistered):
        return [event.cause, *sorted(set(event.model)), *event.uuid]
    if isinstance(event, NodeChecked):
        return [word for each in event.problems for word in (each.code, each.vendor, each.message)]
    conditions = [word for each in event.conditions for word in (each.type, each.status, each.reason, each.message)]
    if isinstance(event, PodObserved):
        return [event.node, event.phase, "deleted" if event.deleted else "", *conditions]
    return conditions


def observation_of(document: dict[str, Any]) -> Observed | Rejected:
    """The event that a document of the observations index holds (its ``_source``)."""
    kind = OBSERVATION_KINDS.get(str(document.get("kind")))
    if kind is None:
        return Rejected(f"no kind of observation is called {document.get('kind')!r:.100}", "document.kind")
    return read(kind, document.get("event"), "document.event")

"""KAI's reservation pods: for a share of a GPU, KAI's binder starts a pod that holds the GPU and reports its number.

Where that pod does not start, no pod that shares the GPU can be bound. The fault is the reservation pod's: the runtime
class, the container toolkit or the driver of its node.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement, find_bind_failure, iterate_events
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import quote
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects, list_conditions

QUESTION: Final = "ReservationHolds"
RESERVATIONS: Final = "kai-resource-reservation"
"""Namespace of the reservation pods, where KAI's settings name no other."""
_WAITED: Final = re.compile(
    r"failed waiting for GPU reservation pod to allocate: (?P<namespace>[^\s/]+)/(?P<pod>[^\s,;]+)"
)
_NODE: Final = re.compile(r"Failed to bind pod \S+ to node (?P<node>[^\s:]+)")
_FAILURES: Final = ("BindingError", "FailedBinding")


def check_reservation(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether a bind failed because its reservation pod does not start."""
    candidates = [find_bind_failure(facts), next(iterate_events(facts, *_FAILURES), None)]
    for statement in filter(None, candidates):
        if match := _WAITED.search(statement.text):
            obstacle = _describe(facts, statement, match["namespace"], match["pod"].rstrip("."))
            yield TreeStep(QUESTION, "no", obstacle.evidence, (), [obstacle])
            return


def _describe(facts: DiagnosisFacts, statement: Statement, namespace: str, name: str) -> FoundObstacle:
    pod = facts.objects.find(kinds.POD, name, namespace) if facts.objects else None
    bind = facts.attempt.bind if facts.attempt else None
    match = _NODE.search(statement.text)
    node = get_text(pod, "spec", "nodeName") or (bind.node if bind else "") or (match["node"] if match else "")
    why = _find_problem(facts, pod, namespace, name)
    words: dict[str, Word] = {"reservation": f"{namespace}/{name}", "node": node or "?", "why": quote(why)}
    evidence = [statement.evidence]
    if why:
        evidence.append(Evidence("pod", f"/api/v1/namespaces/{namespace}/pods/{name}", words=why))
    code = "ReservationWithoutDriver" if "NVML" in why else "ReservationFails"
    return FoundObstacle(code, words, nodes=[node] if node else (), evidence=evidence, clauses=["why"] if why else [])


def _find_problem(facts: DiagnosisFacts, pod: Fields | None, namespace: str, name: str) -> str:
    """Find what keeps the reservation pod: its container's last words, its scheduler's, or an event about it."""
    for status in iterate_objects(pod, "status", "containerStatuses"):
        ended = (get_text(status, state, "terminated", "message") for state in ("lastState", "state"))
        waits = get_text(status, "state", "waiting", "reason")
        if last := next(filter(None, ended), ""):
            return f"{waits}: {last}" if waits else last
        if waits not in ("", "ContainerCreating"):
            return f"{waits}: {get_text(status, 'state', 'waiting', 'message')}"
    for condition in list_conditions(pod or {}):
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    events = facts.objects.select_events("Pod", name, namespace) if facts.objects else []
    return next((f"{event.reason}: {event.note}" for event in events if event.is_warning), "")

"""Volcano's queues: why a group of pods is not let in, by the objects of the queue, the group and the nodes.

Volcano writes the same words about a queue whose capability is used up, a cluster without free devices and a group that
is larger than the cluster; of a queue that is closed or does not exist it writes nothing. Only the objects tell.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.group_members import Group, find_refused_member
from engine.diagnosis.layers.statements import Statement, find_refusal
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from engine.snapshot.quantity import QuantityError, format_amount, read_nano, round_nano
from runtime.kubernetes.object_fields import Fields, get_object, get_text

QUEUE: Final = "Queue.scheduling.volcano.sh"
QUEUE_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
SYSTEM: Final = "Volcano"
_DEFAULT: Final = "default"
_ROOT: Final = "root"
_CLOSED: Final = ("Closed", "Closing")
_BEFORE_QUEUE: Final = ("", "Pending")


def explain_queue(facts: DiagnosisFacts, group: Group | None) -> FoundObstacle | None:
    """Explain a queue that does not exist, is closed, or has more than it deserves; None for others."""
    pod, objects = facts.pod, facts.objects
    if pod is None or objects is None or not (group or QUEUE_ANNOTATION in pod.annotations):
        return None
    name = (group.queue if group else "") or pod.annotations.get(QUEUE_ANNOTATION, "") or _DEFAULT
    queue = objects.find(QUEUE, name)
    if queue is None:
        is_missing = objects.has_read(QUEUE)
        words: dict[str, Word] = {"queue": name, "system": SYSTEM}
        return FoundObstacle("QueueMissing", words, evidence=[pod.source]) if is_missing else None
    state = get_text(queue, "status", "state")
    if state in _CLOSED and (group is None or group.phase in _BEFORE_QUEUE):
        words = {"queue": name, "system": SYSTEM, "state": state}
        return FoundObstacle("QueueClosed", words, evidence=[pod.source])
    return _explain_overuse(facts, group, name, queue) if group else None


def _explain_overuse(facts: DiagnosisFacts, group: Group, name: str, queue: Fields) -> FoundObstacle | None:
    """Explain a queue that holds what it deserves: the group's text has no reason then, and its nodes have room."""
    refusal = find_refusal(facts)
    is_silent = refusal and "pod group is not ready" in refusal.text and "Origin reason" not in refusal.text
    if refusal is None or not is_silent or len(group.members) < group.minimum or find_refused_member(facts, group):
        return None
    deserved, used = (
        _read_amounts(get_object(queue, *path)) for path in (("spec", "deserved"), ("status", "allocated"))
    )
    request = _read_request(group)
    for resource, limit in deserved.items():
        if request.get(resource) and used.get(resource, 0) + request[resource] > limit:
            amounts = {"limit": limit, "used": used.get(resource, 0), "asked": request[resource]}
            words: dict[str, Word] = {
                "queue": name, "system": SYSTEM, "kind": write_phrase("quota_queue"), "resource": resource,
                **_format(resource, amounts),
            }  # fmt: skip
            return FoundObstacle("QueueFull", words, amounts, evidence=[refusal.evidence], clauses=["amounts"])
    return None


def describe_refusal(
    facts: DiagnosisFacts, group: Group, resources: str, statement: Statement, *, is_of_cluster: bool
) -> FoundObstacle:
    """Describe a group that is not let in for ``resources``, with its queue's capability or the cluster's size.

    ``is_of_cluster``: Volcano says that groups have asked for more than the cluster has, whatever the queue may use.
    """
    name, objects = group.queue or _DEFAULT, facts.objects
    resources = resources or _find_exceeded(objects, name, group)
    words: dict[str, Word] = {"group": group.name, "queue": name}
    words["resources"] = resources or write_phrase("unnamed_resource")
    obstacle = FoundObstacle("GroupNotEnqueued", words, evidence=[statement.evidence])
    resource = next((part for part in resources.replace(",", " ").split() if part in _read_request(group)), "")
    if objects is None or not resource:
        return obstacle
    queue = objects.find(QUEUE, name)
    capability = _read_amounts(get_object(queue, "spec", "capability"))
    is_own = resource in capability and not is_of_cluster
    limit = capability.get(resource) if is_own else _sum_nodes(objects, resource)
    if limit is None or queue is None:
        return obstacle
    used = _read_used(queue).get(resource, 0) if is_own else _sum_used(objects, resource)
    amounts = {"limit": limit, "used": used, "asked": _read_request(group)[resource]}
    words |= {**_format(resource, amounts), "resource": resource}
    if amounts["asked"] > limit:
        words["bound"] = write_phrase("bound_queue" if is_own else "bound_cluster")
        return obstacle._replace(code="GroupNeverFits", words=words, numbers=amounts)
    clause = "overused" if is_of_cluster else "capability" if is_own else "cluster"
    return obstacle._replace(words=words, numbers=amounts, clauses=[clause])


def _find_exceeded(objects: CaseObjects | None, name: str, group: Group) -> str:
    """Find the first resource of which the queue's capability has too little left for the group; empty if none."""
    queue = objects.find(QUEUE, name) if objects else None
    if queue is None:
        return ""
    limits, used = _read_amounts(get_object(queue, "spec", "capability")), _read_used(queue)
    exceeded = (
        resource
        for resource, amount in _read_request(group).items()
        if resource in limits and used.get(resource, 0) + amount > limits[resource]
    )
    return next(exceeded, "")


def _read_request(group: Group) -> dict[str, int]:
    return _read_amounts(get_object(group.object, "spec", "minResources"))


def _read_used(queue: Fields) -> dict[str, int]:
    return _read_amounts(get_object(queue, "status", "allocated"))


def _sum_used(objects: CaseObjects, resource: str) -> int:
    """Sum what the queues have allocated; the root has the sum of its children."""
    root = objects.find(QUEUE, _ROOT)
    queues: Iterable[Fields] = [root] if root else objects.select(QUEUE)
    return sum(_read_used(queue).get(resource, 0) for queue in queues)


def _sum_nodes(objects: CaseObjects, resource: str) -> int | None:
    """Sum a resource over the nodes; None if no node was read."""
    if not objects.has_read(kinds.NODE):
        return None
    nodes: Iterable[Fields] = objects.select(kinds.NODE)
    return sum(_read_amounts(get_object(node, "status", "allocatable")).get(resource, 0) for node in nodes)


def _read_amounts(amounts: Fields) -> dict[str, int]:
    """Read amounts as integers; those that are no quantities are left out."""
    numbers = {}
    for resource, amount in amounts.items():
        try:
            numbers[resource] = round_nano(resource, read_nano(amount))
        except QuantityError:
            continue
    return numbers


def _format(resource: str, amounts: Mapping[str, int]) -> dict[str, Word]:
    return {name: format_amount(resource, amount) for name, amount in amounts.items()}

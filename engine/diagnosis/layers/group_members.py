"""The group of pods that a pod belongs to, in the words of each scheduler of gangs, and the group's other members."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement
from engine.hami.quantities import parse_whole
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import (
    Fields,
    get_object,
    get_text,
    iterate_objects,
    list_conditions,
    parse_moment,
)

if TYPE_CHECKING:
    from engine.snapshot.case_objects import CaseObjects

System = Literal["Volcano", "Koordinator", "scheduler-plugins", "KAI", "Kubernetes"]

_ENDED: Final = ("Succeeded", "Failed")
_NODES: Final = re.compile(r"\d+/\d+ nodes are (?:un)?available: \d+ ")


@dataclass(frozen=True, slots=True)
class _Mark:
    """Mark on a pod that names its group. ``minimum``: path of the number of members in the group's spec."""

    system: System
    location: Literal["labels", "annotations", "spec"]
    path: tuple[str, ...]
    kind: str
    minimum: tuple[str, ...] = ("minMember",)
    field: str = "minMember"


_MARKS: Final = (
    _Mark("KAI", "annotations", ("pod-group-name",), "PodGroup.scheduling.run.ai"),
    _Mark("Volcano", "annotations", ("scheduling.k8s.io/group-name",), "PodGroup.scheduling.volcano.sh"),
    _Mark("scheduler-plugins", "labels", ("scheduling.x-k8s.io/pod-group",), "PodGroup.scheduling.x-k8s.io"),
    _Mark("scheduler-plugins", "labels", ("pod-group.scheduling.sigs.k8s.io",), "PodGroup.scheduling.sigs.k8s.io"),
    _Mark("Koordinator", "labels", ("gang.scheduling.koordinator.sh/name",), "", field="min-available"),
    _Mark("Koordinator", "annotations", ("gang.scheduling.koordinator.sh/name",), "", field="min-available"),
    _Mark("Kubernetes", "spec", ("schedulingGroup", "podGroupName"), kinds.POD_GROUP,
          ("schedulingPolicy", "gang", "minCount"), "minCount"),
)  # fmt: skip
GROUP_ANNOTATIONS: Final = tuple(mark.path[0] for mark in _MARKS if mark.location == "annotations")
"""Annotations of a pod that name its group."""
_KOORDINATOR_MINIMUM: Final = "gang.scheduling.koordinator.sh/min-available"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of pods that start together."""

    system: System
    name: str
    field: str
    """Field that holds the number of members that it needs."""
    minimum: int = 0
    """Number of members that it needs; 0 if not known."""
    object: Fields | None = None
    members: Sequence[Fields] = ()
    """Its pods that were read and have not ended, with the pod itself."""

    @property
    def phase(self) -> str:
        """Phase of the group's object."""
        return get_text(self.object, "status", "phase")

    @property
    def topology(self) -> str:
        """Key of the label whose value all nodes of the group must share; empty for none."""
        constraints = iterate_objects(self.object, "spec", "schedulingConstraints", "topology")
        return next((key for entry in constraints if (key := get_text(entry, "key"))), "")

    @property
    def queue(self) -> str:
        """Queue of the group's object."""
        return get_text(self.object, "spec", "queue")


def find_group(facts: DiagnosisFacts) -> Group | None:
    """Find the group that the pod's marks name; None for a pod without a group."""
    pod = facts.pod
    if pod is None or not facts.is_latest:
        return None
    marked = {"metadata": {"labels": pod.labels, "annotations": pod.annotations}, "spec": pod.spec or {}}
    return find_group_of_pod(marked, facts.objects, facts.namespace)


def find_group_of_pod(pod: Fields, objects: "CaseObjects | None", namespace: str) -> Group | None:
    """Find the group that the marks of a plain pod name, with its members among the objects."""
    for mark in _MARKS:
        if name := _get_mark(pod, mark):
            return _build_group(pod, objects, namespace, mark, name)
    return None


def has_group(pod: Fields) -> bool:
    """Tell whether the marks of a pod's object name a group."""
    return bool(find_group_name(pod))


def find_group_name(pod: Fields) -> str:
    """Find the name of the group that the marks of a pod's object name; empty for none."""
    return next((name for mark in _MARKS if (name := _get_mark(pod, mark))), "")


def _build_group(pod: Fields, objects: "CaseObjects | None", namespace: str, mark: _Mark, name: str) -> Group:
    entry = objects.find(mark.kind, name, namespace) if objects and mark.kind else None
    members = [
        member
        for member in (objects.select(kinds.POD, namespace) if objects else ())
        if _get_mark(member, mark) == name and get_text(member, "status", "phase") not in _ENDED
    ]
    return Group(mark.system, name, mark.field, _get_minimum(entry, pod, mark), entry, members)


def list_members(objects: "CaseObjects", kind: str, namespace: str, name: str) -> list[Fields]:
    """List the pods whose marks name a group; ``kind`` is that of the group's object."""
    marks = [mark for mark in _MARKS if mark.kind == kind]
    pods = objects.select(kinds.POD, namespace)
    return [pod for pod in pods if any(_get_mark(pod, mark) == name for mark in marks)]


def _get_mark(pod: Fields, mark: _Mark) -> str:
    start = ("spec",) if mark.location == "spec" else ("metadata", mark.location)
    return get_text(get_object(pod, *start), *mark.path)


def _get_minimum(group: Fields | None, pod: Fields, mark: _Mark) -> int:
    if mark.system == "Koordinator":
        marks = {**get_object(pod, "metadata", "annotations"), **get_object(pod, "metadata", "labels")}
        return parse_whole(str(marks.get(_KOORDINATOR_MINIMUM, ""))) or 0
    value = get_object(group, "spec", *mark.minimum[:-1]).get(mark.minimum[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def iterate_group_statements(facts: DiagnosisFacts, group: Group) -> Iterator[Statement]:
    """Iterate over what was written on the group's object: its events, the latest first, then its conditions."""
    path = f"{group.system} PodGroup {facts.namespace}/{group.name}"
    for event in facts.objects.select_events("PodGroup", group.name, facts.namespace) if facts.objects else ():
        evidence = Evidence("event", path, event.time, event.reporter, words=f"{event.reason}: {event.note}")
        yield Statement(event.note, evidence, event.reason)
    for condition in iterate_objects(group.object, "status", "conditions"):
        if get_text(condition, "status") == "True":
            time = parse_moment(get_text(condition, "lastTransitionTime"))
            message = get_text(condition, "message")
            yield Statement(message, Evidence("group", path, time, words=message), get_text(condition, "reason"))
    for condition in iterate_objects(group.object, "status", "schedulingConditions"):
        time = parse_moment(get_text(condition, "lastTransitionTime"))
        for reason in iterate_objects(condition, "reasons") if get_text(condition, "status") == "True" else ():
            message = get_text(reason, "message")
            yield Statement(message, Evidence("group", path, time, words=message), get_text(reason, "reason"))


def find_refused_member(facts: DiagnosisFacts, group: Group) -> tuple[str, Statement] | None:
    """Find another member that a scheduler has judged and refused: its name, and the scheduler's words on it."""
    for member in group.members:
        name = get_text(member, "metadata", "name")
        for condition in list_conditions(member) if name != facts.name else ():
            if condition.type == "PodScheduled" and condition.status == "False" and _NODES.search(condition.message):
                path = f"/api/v1/namespaces/{facts.namespace}/pods/{name}"
                evidence = Evidence("pod", path, condition.last_transition_at, words=condition.message)
                return name, Statement(condition.message, evidence, condition.reason)
    return None

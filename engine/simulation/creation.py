"""Creation of a pod: what the API server writes into it and why it refuses it, before any webhook and scheduler.

A class of priority gives the pod its priority, a class of runtime its overhead and its nodes, and LimitRanges give
amounts to containers that name none. Bounds and quotas are checked last, on the pod as webhooks leave it. Classes of
which no object was read are left as the pod names them.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import write_phrase
from engine.simulation.cluster import SimulationCluster
from engine.simulation.limit_ranges import BrokenBound, find_broken_bound, select_limit_ranges, write_amounts
from engine.simulation.quotas import QuotaRefusal, find_quota_refusal
from engine.simulation.setting import Note
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError
from engine.snapshot.pod_defaults import write_defaults
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

_CONTAINERS: Final = ("initContainers", "containers")
_PRIORITY: Final = "PriorityClass"
_RUNTIME: Final = "RuntimeClass"


class CreatedPod(NamedTuple):
    """A pod as the API server would store it, with what it added."""

    pod: Json
    notes: tuple[Note, ...] = ()
    refusal: FoundObstacle | None = None


def create_pod(cluster: SimulationCluster, pod: Mapping[str, Any]) -> CreatedPod:
    """Create a pod from one that is written in a file; a pod that the cluster has already stays as it is."""
    written = write_defaults(pod)
    if not is_new(cluster, written):
        return CreatedPod(written)
    for kind, name in ((_PRIORITY, "priorityClassName"), (_RUNTIME, "runtimeClassName")):
        if missing := _find_missing_class(cluster, kind, get_text(written, "spec", name)):
            return CreatedPod(written, refusal=missing)
    created = _add_runtime(cluster, _add_priority(cluster, written))
    notes: list[Note] = []
    for limit_range in _select_ranges(cluster, written):
        completed = write_amounts(created, limit_range)
        notes += _describe_amounts(created, completed, get_text(limit_range, "metadata", "name"))
        created = completed
    return CreatedPod(created, tuple(notes))


def find_refusal(cluster: SimulationCluster, pod: Json) -> BrokenBound | QuotaRefusal | None:
    """Find why the API server would refuse a new pod after all webhooks: a bound of a LimitRange, or a quota."""
    if not is_new(cluster, pod):
        return None
    try:
        return find_broken_bound(pod, _select_ranges(cluster, pod)) or find_quota_refusal(cluster, pod)
    except FieldError:
        # The judge says which field of the pod is malformed.
        return None


def _select_ranges(cluster: SimulationCluster, pod: Mapping[str, Any]) -> list[Json]:
    return select_limit_ranges(cluster.list_kind(kinds.LIMIT_RANGE), get_text(pod, "metadata", "namespace"))


def is_new(cluster: SimulationCluster, pod: Mapping[str, Any]) -> bool:
    """Tell whether the cluster was described without the pod."""
    key = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
    return key not in cluster.objects.pod_keys


def _find_missing_class(cluster: SimulationCluster, kind: str, name: str) -> FoundObstacle | None:
    """Find out that a class which the pod names does not exist; None where no object of the kind was read."""
    names = [get_text(item, "metadata", "name") for item in cluster.list_kind(kind)]
    if not name or not names or name in names or name.startswith("system-"):
        return None
    near = difflib.get_close_matches(name, names, 1, 0.6)
    words = {"kind": kind, "name": name, "nearest": near[0] if near else ""}
    return FoundObstacle("PodClassMissing", words, clauses=["nearest"] if near else [])


def _add_priority(cluster: SimulationCluster, pod: Json) -> Json:
    """Add name and number of the pod's priority class, or of the class that is the default."""
    spec = get_object(pod, "spec")
    name = get_text(spec, "priorityClassName")
    for item in cluster.list_kind(_PRIORITY):
        if (get_text(item, "metadata", "name") == name) if name else item.get("globalDefault") is True:
            policy = {"preemptionPolicy": text} if (text := get_text(item, "preemptionPolicy")) else {}
            priority = {"priorityClassName": get_text(item, "metadata", "name"), "priority": item.get("value", 0)}
            return {**pod, "spec": {**policy, **spec, **priority}}
    return pod


def _add_runtime(cluster: SimulationCluster, pod: Json) -> Json:
    """Add the overhead, the node selector and the tolerations of the pod's runtime class."""
    spec = get_object(pod, "spec")
    name = get_text(spec, "runtimeClassName")
    for item in cluster.list_kind(_RUNTIME):
        if name and get_text(item, "metadata", "name") == name:
            overhead = get_object(item, "overhead", "podFixed")
            selector = {**get_object(spec, "nodeSelector"), **get_object(item, "scheduling", "nodeSelector")}
            tolerations = [*iterate_objects(spec, "tolerations"), *iterate_objects(item, "scheduling", "tolerations")]
            added = {"overhead": overhead, "nodeSelector": selector, "tolerations": tolerations}
            return {**pod, "spec": {**spec, **{field: value for field, value in added.items() if value}}}
    return pod


def _describe_amounts(before: Json, after: Json, limit_range: str) -> Iterator[Note]:
    """Describe what a LimitRange gave to containers."""
    for field in _CONTAINERS:
        pairs = zip(iterate_objects(before, "spec", field), iterate_objects(after, "spec", field), strict=True)
        for old, new in pairs:
            added = [
                f"{kind}.{name}: {amount}"
                for kind in ("requests", "limits")
                for name, amount in get_object(new, "resources", kind).items()
                if name not in get_object(old, "resources", kind)
            ]
            if added:
                words = {"range": limit_range, "container": get_text(new, "name"), "amounts": ", ".join(added)}
                yield Note("LimitRangeAdds", write_phrase("note_limit_range", **words))

"""Amounts of a pod lowered to what is left on a node or of a quota, or to a bound; and quotas that are raised."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.simulation.change_trial import ChangeTrial
from engine.simulation.cluster import SimulationCluster
from engine.simulation.creation import find_refusal
from engine.simulation.limit_ranges import BrokenBound
from engine.simulation.quota_usage import get_resource
from engine.simulation.quotas import ExceededQuota
from engine.simulation.verdict import PodVerdict
from engine.snapshot.fields import FieldError, read_nanos
from engine.snapshot.quantity import CPU, format_amount, round_amounts, round_nano
from engine.suggestions.suggestion import Edit
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

_CONTAINERS: Final = ("initContainers", "containers")


def iterate_creation_trials(cluster: SimulationCluster, verdict: PodVerdict) -> Iterator[ChangeTrial]:
    """Iterate over changes for a pod that the API server refuses to create: a smaller amount, or a larger quota."""
    pod = verdict.pod
    match find_refusal(cluster, pod):
        case BrokenBound(field="max", container=container) as broken if container:
            bound = round_nano(broken.resource, broken.bound)
            amount = round_nano(broken.resource, broken.amount)
            if amount > bound:
                yield _cut_container(pod, container, broken.resource, amount, bound)
        case ExceededQuota(claim="") as exceeded:
            resource = get_resource(exceeded.entry)
            requested, free = (
                round_nano(resource, nano) for nano in (exceeded.requested, exceeded.hard - exceeded.used)
            )
            if (
                free > 0
                and not exceeded.entry.startswith("limits.")
                and (lowered := lower_request(pod, resource, requested, free))
            ):
                yield ChangeTrial((lowered[1],), lowered[0])
            yield _raise_quota(pod, exceeded)


def _cut_container(pod: Json, name: str, resource: str, amount: int, bound: int) -> ChangeTrial:
    """Cut the amounts of a container to the largest that a LimitRange allows."""
    edit = Edit(
        "request", f"{name}: {resource}", format_amount(resource, amount), format_amount(resource, bound),
        (amount - bound) / amount,
    )  # fmt: skip
    spec = get_object(pod, "spec")
    listed = {
        field: [
            _cut_amounts(container, resource, bound) if get_text(container, "name") == name else container
            for container in iterate_objects(spec, field)
        ]
        for field in _CONTAINERS
        if field in spec
    }
    return ChangeTrial((edit,), {**pod, "spec": {**spec, **listed}})


def _cut_amounts(container: Mapping[str, Any], resource: str, bound: int) -> Json:
    resources = get_object(container, "resources")
    nanos = {key: read_nanos(resources, key) for key in ("limits", "requests")}
    cut = {
        key: {**get_object(resources, key), resource: _write_amount(resource, bound)}
        for key, amounts in nanos.items()
        if round_nano(resource, amounts.get(resource, 0)) > bound
    }
    return {**container, "resources": {**resources, **cut}}


def _raise_quota(pod: Json, exceeded: ExceededQuota) -> ChangeTrial:
    """Raise a quota to what is used and requested."""
    resource = get_resource(exceeded.entry)
    after = round_nano(resource, exceeded.used + exceeded.requested)
    before = format_amount(resource, round_nano(resource, exceeded.hard))
    spec = get_object(exceeded.quota, "spec")
    hard = {**get_object(spec, "hard"), exceeded.entry: _write_amount(resource, after)}
    edit = Edit("quota", exceeded.entry, before, format_amount(resource, after))
    return ChangeTrial((edit,), pod, objects=({**exceeded.quota, "spec": {**spec, "hard": hard}},))


def lower_request(pod: Json, resource: str, amount: int, free: int) -> tuple[Json, Edit] | None:
    """Lower the request of the pod as a whole, or else the largest of a container, by what is missing."""
    if resource in get_object(pod, "spec", "resources", "requests"):
        return _lower_pod_level(pod, resource, amount, free)
    containers = [
        (field, position, container)
        for field in _CONTAINERS
        for position, container in enumerate(iterate_objects(pod, "spec", field))
    ]
    amounts = [(_read_amount(container, resource), field, position) for field, position, container in containers]
    if not amounts:
        return None
    largest, field, position = max(amounts, key=lambda entry: entry[0])
    after = largest - (amount - free)
    if after <= 0:
        return None
    container = dict(list(iterate_objects(pod, "spec", field))[position])
    resources = dict(get_object(container, "resources"))
    text_after = _write_amount(resource, after)
    for key in ("limits", "requests"):
        if resource in get_object(resources, key):
            resources[key] = {**get_object(resources, key), resource: text_after}
    listed = list(iterate_objects(pod, "spec", field))
    listed[position] = {**container, "resources": resources}
    where = f"{get_text(container, 'name')}: {resource}"
    edit = Edit(
        "request", where, format_amount(resource, largest), format_amount(resource, after), (largest - after) / largest
    )
    return {**pod, "spec": {**get_object(pod, "spec"), field: listed}}, edit


def _lower_pod_level(pod: Json, resource: str, amount: int, free: int) -> tuple[Json, Edit] | None:
    """Lower what the pod as a whole requests; its overhead stays."""
    spec = get_object(pod, "spec")
    before = _read_amount(spec, resource)
    after = before - (amount - free)
    if after <= 0:
        return None
    resources = dict(get_object(spec, "resources"))
    for key in ("limits", "requests"):
        if resource in get_object(resources, key):
            resources[key] = {**get_object(resources, key), resource: _write_amount(resource, after)}
    texts = format_amount(resource, before), format_amount(resource, after)
    edit = Edit("request", f"spec.resources: {resource}", *texts, (before - after) / before)
    return {**pod, "spec": {**spec, "resources": resources}}, edit


def _read_amount(container: Mapping[str, Any], resource: str) -> int:
    try:
        return round_amounts(read_nanos(get_object(container, "resources"), "requests")).get(resource, 0)
    except FieldError:
        return 0


def _write_amount(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)

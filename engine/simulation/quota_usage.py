"""Amounts that pods and claims count in a ResourceQuota, and the pods that a quota with scopes counts.

The rules are those of Kubernetes' quota evaluators. Amounts are in billionths of their unit, by the entry of a quota.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.snapshot.fields import FieldError, Object, read_nanos
from engine.snapshot.pods import has_ended
from engine.snapshot.quantity import CPU, NANO, PODS
from engine.snapshot.requests import Nanos, sum_limits, sum_requests
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

COUNT_OF_PODS: Final = "count/pods"
COUNT_OF_CLAIMS: Final = "count/resourceclaims.resource.k8s.io"
DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
"""End of the entry that limits the devices of a class."""
_IMPLICIT: Final = "requests.deviceclass.resource.kubernetes.io/"
_COMPUTE: Final = (CPU, "memory")
_NATIVE: Final = (*_COMPUTE, "ephemeral-storage")
_PLAIN: Final = frozenset(
    (*_NATIVE, PODS, COUNT_OF_PODS, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _NATIVE))
)
_REQUIRED: Final = tuple(f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in _COMPUTE)
"""Entries for which every container has to name an amount."""
MAX_DEVICES: Final = 32
"""Devices that a request for all of them counts: as many as one claim can have."""
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def measure_pod(pod: Object) -> Nanos:
    """Measure a pod; one that has ended counts only as an object. Raises `FieldError`."""
    usage: Nanos = {COUNT_OF_PODS: NANO}
    if has_ended(pod):
        return usage
    usage[PODS] = NANO
    for resource, nano in sum_requests(pod).items():
        usage[f"requests.{resource}"] = nano
        if resource in _NATIVE or resource.startswith("hugepages-"):
            usage[resource] = nano
    limits = sum_limits(pod)
    return usage | {f"limits.{resource}": nano for resource, nano in limits.items() if resource in _NATIVE}


def measure_claim(claim: Object, classes: Mapping[str, Object]) -> Nanos:
    """Measure a ResourceClaim: by class the devices that it may get. classes: device classes by name."""
    usage: Nanos = {COUNT_OF_CLAIMS: NANO}
    for request in iterate_objects(claim, "spec", "devices", "requests"):
        alternatives = list(iterate_objects(request, "firstAvailable"))
        counts: dict[str, int] = {}
        for choice in alternatives or [get_object(request, "exactly") or request]:
            name = get_text(choice, "deviceClassName")
            counts[name] = max(counts.get(name, 0), _count_devices(choice))
        for name, count in counts.items():
            for entry in _list_entries(name, classes):
                usage[entry] = usage.get(entry, 0) + count * NANO
    return usage


def _list_entries(device_class: str, classes: Mapping[str, Object]) -> list[str]:
    """List the entries that devices of a class count in: its own, and those of the resources that it serves."""
    resource = get_text(classes.get(device_class, {}), "spec", "extendedResourceName")
    served = [f"requests.{resource}"] if resource else []
    return [f"{device_class}{DEVICES}", f"{_IMPLICIT}{device_class}", *served]


def _count_devices(request: Object) -> int:
    count = request.get("count")
    if get_text(request, "allocationMode") == "All":
        return MAX_DEVICES
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 1


def find_missing_amounts(pod: Object, entries: Iterable[str]) -> dict[str, list[str]]:
    """Find containers that leave out an amount of CPU or memory which a quota counts, by the quota's entry.

    A pod with amounts of its own needs none of its containers.
    """
    spec = get_object(pod, "spec")
    of_pod = get_object(spec, "resources")
    if any(get_object(of_pod, field) for field in ("requests", "limits")):
        return {}
    missing: dict[str, list[str]] = {}
    for entry in sorted({*entries} & {*_REQUIRED}):
        field, _, resource = entry.rpartition(".")
        for kind in ("containers", "initContainers"):
            for container in iterate_objects(spec, kind):
                if resource not in get_object(container, "resources", field or "requests"):
                    missing.setdefault(entry, []).append(get_text(container, "name"))
    return missing


def get_resource(entry: str) -> str:
    """Return the resource that an entry of a quota limits."""
    return entry.removeprefix("requests.").removeprefix("limits.")


def is_entry_of_pods(entry: str) -> bool:
    """Tell whether an entry of a quota limits something of pods."""
    return entry in _PLAIN or entry.startswith(("hugepages-", "requests.hugepages-")) or _is_extended(entry)


def _is_extended(entry: str) -> bool:
    resource = entry.removeprefix("requests.")
    return resource != entry and "/" in resource and (entry.startswith(_IMPLICIT) or "kubernetes.io/" not in resource)


def list_scopes(quota: Object) -> list[str]:
    """List the scopes of a quota in words: ``BestEffort``, ``PriorityClass In (high, low)``."""
    return [_write_scope(*scope) for scope in _iterate_scopes(quota)]


def _write_scope(name: str, operator: str, values: Sequence[str]) -> str:
    if operator == "Exists":
        return name
    return f"{name} {operator} ({', '.join(values)})" if values else f"{name} {operator}"


def _iterate_scopes(quota: Object) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    spec = get_object(quota, "spec")
    for name in spec.get("scopes") or ():
        yield str(name), "Exists", ()
    for term in iterate_objects(spec, "scopeSelector", "matchExpressions"):
        values = tuple(map(str, term.get("values") or ()))
        yield get_text(term, "scopeName"), get_text(term, "operator"), values


def counts_pod(quota: Object, pod: Object) -> bool:
    """Tell whether a quota counts a pod: one without scopes counts all, another those that meet each scope."""
    return all(_meets(scope, pod) for scope in _iterate_scopes(quota))


def _meets(scope: tuple[str, str, tuple[str, ...]], pod: Object) -> bool:
    name, operator, values = scope
    match name:
        case "Terminating" | "NotTerminating":
            deadline = get_object(pod, "spec").get("activeDeadlineSeconds")
            return (isinstance(deadline, int) and deadline >= 0) == (name == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return _is_best_effort(pod) == (name == "BestEffort")
        case "PriorityClass":
            return _selects_class(get_text(pod, "spec", "priorityClassName"), operator, values)
        case "CrossNamespacePodAffinity":
            return _looks_into_namespaces(pod)
    return False


def _selects_class(priority_class: str, operator: str, values: Sequence[str]) -> bool:
    match operator:
        case "In":
            return priority_class in values
        case "NotIn":
            return not priority_class or priority_class not in values
        case "Exists":
            return bool(priority_class)
        case "DoesNotExist":
            return not priority_class
    return False


def _is_best_effort(pod: Object) -> bool:
    """Tell whether neither the pod nor a container names CPU or memory."""
    spec = get_object(pod, "spec")
    owners = [
        spec,
        *(container for kind in ("containers", "initContainers") for container in iterate_objects(spec, kind)),
    ]
    try:
        amounts = [
            read_nanos(get_object(owner, "resources"), field) for owner in owners for field in ("requests", "limits")
        ]
    except FieldError:
        return False
    return not any(named.get(resource, 0) > 0 for named in amounts for resource in _COMPUTE)


def _looks_into_namespaces(pod: Object) -> bool:
    """Tell whether a term of the pod's affinity to pods names or selects namespaces."""
    affinity = get_object(pod, "spec", "affinity")
    required = (term for kind in _AFFINITIES for term in iterate_objects(affinity, kind, _TERMS))
    preferred = (
        get_object(weighted, "podAffinityTerm")
        for kind in _AFFINITIES
        for weighted in iterate_objects(affinity, kind, _PREFERRED)
    )
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in (*required, *preferred))

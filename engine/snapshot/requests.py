"""The amounts that a pod requests, added up as kube-scheduler does it.

Containers and sidecars (init containers with restartPolicy Always) run side by side; the other init containers run one
after the other, each next to the sidecars before it. The larger of the two counts, then requests at the level of the
pod replace those of its containers, then the overhead of the runtime class is added.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.snapshot.fields import Object, read_items, read_mapping, read_nanos, read_text
from engine.snapshot.quantity import round_amounts

Nanos = dict[str, int]
Amounts = Mapping[str, int]
"""Amounts by resource: millicores of ``cpu``, whole units (bytes) of the others."""

_POD_LEVEL: Final = ("cpu", "memory")


def request_to_place(pod: Object) -> Amounts:
    """Add up the request of a pod that has no node yet: its spec only."""
    return round_amounts(_sum_spec(read_mapping(pod, "spec"), _NO_STATUSES, is_infeasible=False))


def request_on_node(pod: Object) -> Amounts:
    """Add up the request of a pod on a node, which during a resize is the largest of wanted, granted and actual.

    A resize that the kubelet reports as infeasible does not count what the spec wants.
    """
    spec, status = read_mapping(pod, "spec"), read_mapping(pod, "status")
    resizing = _read_statuses(status)
    is_infeasible = bool(resizing or status.get("resources")) and _is_resize_infeasible(status)
    nanos = _sum_spec(spec, resizing, is_infeasible=is_infeasible)
    if "resources" in spec and status.get("resources") is not None:
        _replace_resized_pod_level(nanos, spec, status, is_infeasible=is_infeasible)
    return round_amounts(nanos)


def sum_requests(pod: Object, *, has_overhead: bool = True) -> Nanos:
    """Add up the requests of a pod in billionths, by its spec only; with or without the overhead of its runtime."""
    spec = read_mapping(pod, "spec")
    counted = spec if has_overhead else {key: value for key, value in spec.items() if key != "overhead"}
    return _sum_spec(counted, _NO_STATUSES, is_infeasible=False)


def sum_limits(pod: Object, *, has_overhead: bool = True) -> Nanos:
    """Add up the limits of a pod as its requests are added up; the overhead raises only amounts that have a limit."""
    spec = read_mapping(pod, "spec")
    limits = sum_requests({"spec": _write_limits_as_requests(spec)}, has_overhead=False)
    overhead = read_nanos(spec, "overhead", "spec") if has_overhead else {}
    return {resource: nano + overhead.get(resource, 0) for resource, nano in limits.items()}


def _write_limits_as_requests(spec: Object) -> Object:
    listed = {
        key: [_replace_requests(container) for _, container in read_items(spec, key, "spec")]
        for key in ("containers", "initContainers")
        if key in spec
    }
    return {**(_replace_requests(spec) if "resources" in spec else spec), **listed}


def _replace_requests(owner: Object) -> Object:
    return {**owner, "resources": {"requests": read_mapping(read_mapping(owner, "resources"), "limits")}}


def is_sidecar(container: Object) -> bool:
    """Return whether an init container runs as long as the pod."""
    return container.get("restartPolicy") == "Always"


_Statuses = Mapping[str, tuple[Nanos, Nanos]]
"""Granted and actual requests by container, of containers that report actual ones."""
_NO_STATUSES: Final[_Statuses] = {}


def _sum_spec(spec: Object, statuses: _Statuses, *, is_infeasible: bool) -> Nanos:
    total: Nanos = {}
    for location, container in read_items(spec, "containers", "spec"):
        _add(total, _read_container_request(container, location, statuses, is_infeasible=is_infeasible))
    if spec.get("initContainers"):
        _include_init_containers(total, spec, statuses, is_infeasible=is_infeasible)
    if "resources" in spec:
        for resource, nano in _read_pod_level(spec).items():
            total[resource] = nano
    if "overhead" in spec:
        _add(total, read_nanos(spec, "overhead", "spec"))
    return total


def _include_init_containers(total: Nanos, spec: Object, statuses: _Statuses, *, is_infeasible: bool) -> None:
    sidecars: Nanos = {}
    peak: Nanos = {}
    for location, container in read_items(spec, "initContainers", "spec"):
        if is_sidecar(container):
            request = _read_container_request(container, location, statuses, is_infeasible=is_infeasible)
            _add(total, request)
            _add(sidecars, request)
            _raise_to(peak, sidecars)
        else:
            running = _read_container_request(container, location, _NO_STATUSES, is_infeasible=False)
            _add(running, sidecars)
            _raise_to(peak, running)
    _raise_to(total, peak)


def _read_container_request(container: Object, path: str, statuses: _Statuses, *, is_infeasible: bool) -> Nanos:
    resources = read_mapping(container, "resources", path)
    request = read_nanos(resources, "requests", f"{path}.resources") if resources else {}
    if statuses and (status := statuses.get(read_text(container, "name", path))):
        granted, actual = status
        return _take_largest(actual, granted) if is_infeasible else _take_largest(request, actual, granted)
    return request


def _read_pod_level(spec: Object) -> Nanos:
    """Read the requests at the level of the pod, of the resources that are allowed there."""
    requests = read_nanos(read_mapping(spec, "resources", "spec"), "requests", "spec.resources")
    return {
        resource: nano
        for resource, nano in requests.items()
        if resource in _POD_LEVEL or resource.startswith("hugepages-")
    }


def _replace_resized_pod_level(nanos: Nanos, spec: Object, status: Object, *, is_infeasible: bool) -> None:
    wanted = _read_pod_level(spec)
    actual = read_nanos(read_mapping(status, "resources", "status"), "requests", "status.resources")
    granted = read_nanos(status, "allocatedResources", "status")
    all_wanted = read_nanos(read_mapping(spec, "resources", "spec"), "requests", "spec.resources")
    effective = _take_largest(actual, granted) if is_infeasible else _take_largest(all_wanted, actual, granted)
    for resource, nano in wanted.items():
        nanos[resource] += effective.get(resource, 0) - nano


def _read_statuses(status: Object) -> _Statuses:
    """Read granted and actual requests of the containers whose status has ``resources``."""
    return dict(_iterate_statuses(status)) if status else _NO_STATUSES


def _iterate_statuses(status: Object) -> Iterator[tuple[str, tuple[Nanos, Nanos]]]:
    for key in ("containerStatuses", "initContainerStatuses"):
        for location, container in read_items(status, key, "status"):
            if container.get("resources") is not None:
                resources = read_mapping(container, "resources", location)
                granted = read_nanos(container, "allocatedResources", location)
                actual = read_nanos(resources, "requests", f"{location}.resources")
                yield read_text(container, "name", location), (granted, actual)


def _is_resize_infeasible(status: Object) -> bool:
    for _, condition in read_items(status, "conditions", "status"):
        if condition.get("type") == "PodResizePending":
            return condition.get("reason") == "Infeasible"
    return False


def _take_largest(*requests: Nanos) -> Nanos:
    largest: Nanos = {}
    for request in requests:
        _raise_to(largest, request)
    return largest


def _add(total: Nanos, request: Nanos) -> None:
    for resource, nano in request.items():
        total[resource] = total.get(resource, 0) + nano


def _raise_to(total: Nanos, request: Nanos) -> None:
    for resource, nano in request.items():
        if nano > total.get(resource, nano - 1):
            total[resource] = nano

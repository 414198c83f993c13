"""Manifest of a pod, from the requests of one of its attempts: to change it and simulate it again."""

from collections.abc import Sequence
from typing import Any, Final

import yaml

from engine.hami.annotations import DEVICE_POLICY, NODE_POLICY
from engine.hami.vendors import Family, Resources, Vendor, Vendors, asks_slices, find_vendor
from schemas.answers.attempts import Detail
from schemas.events import AttemptSummarized, Request

_SUMS: Final = (Family.MTHREADS,)
"""Families whose containers name the sum over their devices."""

_LEFT_OUT: Final = "# Devices of vendors that are not configured here are left out.\n"


def write_pod_manifest(namespace: str, name: str, attempt: AttemptSummarized | Detail, vendors: Vendors) -> str:
    """Write the manifest as YAML: containers with the devices that they request, and the annotations about devices.

    The scheduler's policies become annotations, because a pod without them is simulated with the usual ones.
    """
    policies = {NODE_POLICY: attempt.node_policy, DEVICE_POLICY: attempt.device_policy}
    annotations = {key: word for key, word in policies.items() if word} | dict(attempt.constraints or {})
    metadata = {"name": name, "namespace": namespace} | ({"annotations": annotations} if annotations else {})
    init, containers = (_list_containers(attempt.requests, vendors, is_init=is_init) for is_init in (True, False))
    spec = ({"initContainers": init} if init else {}) | {"containers": containers}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    is_complete = all(find_vendor(vendors, request.vendor) for request in attempt.requests if request.count)
    return ("" if is_complete else _LEFT_OUT) + str(yaml.safe_dump(pod, sort_keys=False, width=1000))


def _list_containers(requests: Sequence[Request], vendors: Vendors, *, is_init: bool) -> list[dict[str, Any]]:
    limits: dict[str, dict[str, int]] = {}
    for request in requests:
        if request.init == is_init:
            # A container that requests devices of several vendors has a request for each.
            limits.setdefault(request.container, {}).update(_list_limits(request, vendors))
    return [
        {"name": name} | ({"resources": {"limits": container_limits}} if container_limits else {})
        for name, container_limits in limits.items()
    ]


def _list_limits(request: Request, vendors: Vendors) -> dict[str, int]:
    vendor = find_vendor(vendors, request.vendor)
    if vendor is None or not request.count:
        return {}
    if vendor.family is Family.ENFLAME:
        return _list_enflame_limits(request, vendor.resources)
    names, devices = vendor.resources, request.count if vendor.family in _SUMS else 1
    limits = {names.count: request.count} | _list_memory_limits(request, vendor, devices)
    if names.cores and (request.cores_percent or vendor.amounts.default_cores):
        limits[names.cores] = request.cores_percent * devices
    return limits


def _list_enflame_limits(request: Request, names: Resources) -> dict[str, int]:
    memory = request.memory_mib or 0
    if asks_slices(memory, request.cores_percent):
        return {names.count: memory}
    return {names.memory: memory, names.cores: request.cores_percent}


def _list_memory_limits(request: Request, vendor: Vendor, devices: int) -> dict[str, int]:
    names, memory_mib = vendor.resources, request.memory_mib
    if names.memory and memory_mib:
        return {names.memory: memory_mib // max(vendor.amounts.memory_unit_mib, 1) * devices}
    if names.percentage and request.memory_percent is not None:
        return {names.percentage: request.memory_percent}
    return {}

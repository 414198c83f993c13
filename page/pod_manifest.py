"""The manifest of a pod, from what one of its attempts asked for: to change it and simulate it again."""

from collections.abc import Sequence
from typing import Any, Final

import yaml

from engine.hami.annotations import DEVICE_POLICY, NODE_POLICY
from engine.hami.vendors import Family, Resources, Vendor, Vendors, find_vendor
from schemas.events import AttemptSummarized, Request

_SUMS: Final = (Family.MTHREADS,)
"""Families of which a container names the sum over its devices."""
_MAX_SLICES: Final = 64
"""Of an Enflame device. They are recorded as its memory, which is thousands of MiB where memory was asked for."""

_LEFT_OUT: Final = "# Devices of vendors that are not configured here are left out.\n"


def pod_manifest(namespace: str, name: str, attempt: AttemptSummarized, vendors: Vendors) -> str:
    """YAML: containers with the devices that they asked for, and the annotations about devices.

    The scheduler's policies become annotations, as a pod without them is simulated under the usual ones.
    """
    policies = {NODE_POLICY: attempt.node_policy, DEVICE_POLICY: attempt.device_policy}
    annotations = {key: word for key, word in policies.items() if word} | dict(attempt.constraints or {})
    about = {"name": name, "namespace": namespace} | ({"annotations": annotations} if annotations else {})
    init, containers = (_containers(attempt.requests, vendors, is_init=is_init) for is_init in (True, False))
    spec = ({"initContainers": init} if init else {}) | {"containers": containers}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
    is_whole = all(find_vendor(vendors, request.vendor) for request in attempt.requests if request.count)
    return ("" if is_whole else _LEFT_OUT) + str(yaml.safe_dump(pod, sort_keys=False, width=1000))


def _containers(requests: Sequence[Request], vendors: Vendors, *, is_init: bool) -> list[dict[str, Any]]:
    limits: dict[str, dict[str, int]] = {}
    for request in requests:
        if request.init == is_init:
            # A container that asks several vendors has a request for each.
            limits.setdefault(request.container, {}).update(_limits(request, vendors))
    return [{"name": name} | ({"resources": {"limits": asked}} if asked else {}) for name, asked in limits.items()]


def _limits(request: Request, vendors: Vendors) -> dict[str, int]:
    vendor = find_vendor(vendors, request.vendor)
    if vendor is None or not request.count:
        return {}
    if vendor.family is Family.ENFLAME:
        return _of_enflame(request, vendor.resources)
    names, devices = vendor.resources, request.count if vendor.family in _SUMS else 1
    asked = {names.count: request.count} | _memory(request, vendor, devices)
    if names.cores and (request.cores_percent or vendor.amounts.default_cores):
        asked[names.cores] = request.cores_percent * devices
    return asked


def _of_enflame(request: Request, names: Resources) -> dict[str, int]:
    memory = request.memory_mib or 0
    if not request.cores_percent and 0 < memory <= _MAX_SLICES:
        return {names.count: memory}
    return {names.memory: memory, names.cores: request.cores_percent}


def _memory(request: Request, vendor: Vendor, devices: int) -> dict[str, int]:
    names, memory_mib = vendor.resources, request.memory_mib
    if names.memory and memory_mib:
        return {names.memory: memory_mib // max(vendor.amounts.memory_unit_mib, 1) * devices}
    if names.percentage and request.memory_percent is not None:
        return {names.percentage: request.memory_percent}
    return {}

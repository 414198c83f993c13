"""Annotations that an allocation writes into the pod, and its hold in the cluster state.

The hold bridges the time until the watch brings the pod.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import build_pod_use
from engine.fit.judge.decision import Allocation, Decision, Grant
from engine.fit.judge.plugin_keys import VendorAllocation, build_plugin_annotations, build_plugin_times
from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.allocation import AllocatedDevice, MigAllocation, encode_devices, encode_mig
from engine.hami.annotations import ASSIGNED_NODE, ASSIGNED_TIME, MIG_ALLOCATIONS
from engine.hami.go_values import to_mapping
from engine.hami.mig import Placement
from engine.hami.releases import ReleaseRules
from engine.hami.vendor_annotations import METAX_CLASS
from engine.hami.vendors import Vendor, Vendors, get_rules


def build_annotations(
    allocation: Allocation, requests: Sequence[VendorRequest], vendors: Vendors, pod: Mapping[str, Any]
) -> dict[str, str]:
    """Build the annotations that HAMi's filter writes, each vendor's devices under its own keys, without times."""
    written = {ASSIGNED_NODE: allocation.node}
    for word, held in _list_held(allocation, requests, get_rules(vendors)).items():
        vendor = next(vendor for vendor in vendors if vendor.word == word)
        devices = encode_devices(held, vendor.rules)
        # The device plugin removes from to-allocate what it has allocation; allocated is what usage is read from.
        written |= {key: devices for key in (vendor.pod.allocated, vendor.pod.to_allocate) if key}
        written |= build_plugin_annotations(_to_vendor_allocation(vendor, allocation, requests, pod))
    slices = list(_list_mig_allocations(allocation, requests))
    return written | ({MIG_ALLOCATIONS: encode_mig(slices)} if slices else {})


def build_times(requests: Sequence[VendorRequest], vendors: Vendors, now: datetime) -> dict[str, str]:
    """Build the annotations that hold the time of the call."""
    words = {request.vendor for request in requests if request.asks}
    families = [vendor.family for vendor in vendors if vendor.word in words]
    return {**build_plugin_times(families, now), ASSIGNED_TIME: str(int(now.timestamp()))}


def _to_vendor_allocation(
    vendor: Vendor, allocation: Allocation, requests: Sequence[VendorRequest], pod: Mapping[str, Any]
) -> VendorAllocation:
    grants: list[list[Grant]] = []
    for request, granted in zip(requests, allocation.containers, strict=True):
        if not request.is_further:
            grants.append([])
        if request.vendor == vendor.word:
            grants[-1] += granted
    spec, metadata = to_mapping(pod.get("spec")), to_mapping(pod.get("metadata"))
    listed = [container for field in ("initContainers", "containers") for container in spec.get(field) or ()]
    listed += [{}] * (len(grants) - len(listed))
    texts = {key: text for key, text in to_mapping(metadata.get("annotations")).items() if isinstance(text, str)}
    return VendorAllocation(vendor, grants, [to_mapping(container) for container in listed], texts, allocation.node)


def _list_held(
    allocation: Allocation, requests: Sequence[VendorRequest], rules: ReleaseRules
) -> dict[str, list[list[AllocatedDevice]]]:
    """List by vendor word the devices that each container of the pod holds; vendors that give none are absent."""
    granted = list(zip(requests, allocation.containers, strict=True))
    words = dict.fromkeys(request.vendor for request, grants in granted if grants)
    return {word: _list_vendor_devices(word, granted, rules) for word in words}


def _list_vendor_devices(
    vendor: str, granted: Sequence[tuple[VendorRequest, tuple[Grant, ...]]], rules: ReleaseRules
) -> list[list[AllocatedDevice]]:
    containers: list[list[AllocatedDevice]] = []
    for request, grants in granted:
        # One place per container, also an empty one, which HAMi v2.10.0 drops (its issue 2899).
        if not request.is_further:
            containers.append([])
        if request.vendor == vendor:
            containers[-1] += [_to_held(grant, rules) for grant in grants]
    return containers


def _to_held(grant: Grant, rules: ReleaseRules) -> AllocatedDevice:
    # Up to v2.10 the annotation has no slots, and every share counts one.
    slots = grant.slots if rules.counts_slots else 1
    return AllocatedDevice(grant.uuid, grant.type, grant.memory_mib, grant.cores, slots)


def _list_mig_allocations(allocation: Allocation, requests: Sequence[VendorRequest]) -> Iterator[MigAllocation]:
    container = -1
    for request, grants in zip(requests, allocation.containers, strict=True):
        container += not request.is_further
        for device, grant in enumerate(grants):
            if grant.mig:
                placement = Placement(grant.mig.start, grant.mig.size)
                yield MigAllocation(container, device, grant.uuid, grant.mig.profile, placement)


def reserve(columns: ClusterColumns, decision: Decision, pod: Mapping[str, Any]) -> None:
    """Hold the chosen devices for the pod at once, in place of what it held before; no effect where none was chosen."""
    allocation = decision.allocation
    if allocation is None:
        return
    metadata = pod.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    first_requests = [request for request in decision.containers if not request.is_further]
    init_containers = sum(request.is_init for request in first_requests)
    sidecars = frozenset(position for position, request in enumerate(first_requests) if request.is_sidecar)
    use = build_pod_use(
        allocation.node,
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
        _list_held(allocation, decision.containers, get_rules(columns.vendors)),
        list(_list_mig_allocations(allocation, decision.containers)),
        init_containers=init_containers,
        init_done=False,
        sidecars=sidecars,
        app_class=str(to_mapping(metadata.get("annotations")).get(METAX_CLASS, "")),
    )
    columns.hold(str(metadata.get("uid", "")), use)


def release(columns: ClusterColumns, uid: str) -> None:
    """Free what a pod holds; nothing happens for a pod that holds nothing."""
    columns.delete_pod(uid)

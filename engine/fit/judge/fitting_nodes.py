"""Quick answer whether a pod fits on any of many nodes, for many "what if"s.

It has no scores, reasons or allocation.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints, build_batches, view_all_devices
from engine.fit.judge.checks.fit import list_early_checks, list_gate_checks, list_late_checks
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.request.device_request import build_device_request
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.fits import VENDOR_FITS

Left = Literal["memory_mib", "cores"]
"""Amount of a request of which columns of the device table tell what is left."""

_FIRST_RUN: Final = 64
"""Nodes that are evaluated first where one that fits is enough; four times as many each time after."""
_MAX_NUMA: Final = 16
"""Limit of different numbers of NUMA nodes in a cluster; above it the quick answer does not look at them."""
_MAX_WIDTH: Final = 64
"""Limit of a node's devices; with larger nodes a matrix of all nodes would be mostly padding."""
_COLUMNS: Final = {"memory_mib": ("total_memory", "used_memory"), "cores": ("total_cores", "used_cores")}


class PassingDevices:
    """Devices of a cluster that pass the checks that read one device alone, of one pod after the other.

    It remembers what a check refuses, because consecutive questions are almost the same. It is valid for as long as the
    columns of the devices do not change.
    """

    def __init__(self, columns: ClusterColumns) -> None:
        self._columns = columns
        self._devices: dict[int, DeviceMatrix] = {}
        self._accepted: dict[tuple[object, ...], Bools] = {}
        self._numa: dict[int, list[Bools]] = {}

    def get_devices(self, code: int) -> DeviceMatrix:
        """Get all devices. code: of the vendor whose devices are valid."""
        if code not in self._devices:
            self._devices[code] = view_all_devices(self._columns, code)
        return self._devices[code]

    def find_passing(self, constraints: PodConstraints, request: VendorRequest) -> Bools:
        """Find the devices that pass all of the checks, shape (device rows,)."""
        family, devices = constraints.vendor.family, self.get_devices(constraints.code)
        device_request = build_device_request(request, constraints.annotations, family)
        checks = (
            *list_gate_checks(devices, constraints.accepts_kind, family),
            *list_early_checks(devices, device_request, constraints.match_uuids(devices)),
            *list_late_checks(devices, device_request, partial(device_request.resolve_memory, devices.total_memory)),
        )
        passes: Bools = devices.valid[0].copy()
        for check in checks:
            if check.key not in self._accepted:
                self._accepted[check.key] = ~check.refuses()[0]
            passes &= self._accepted[check.key]
        return passes

    def group_by_numa(self, constraints: PodConstraints, passes: Bools) -> list[Bools]:
        """Group the devices that pass by NUMA node where the pod's have to be on the same one; else in one group."""
        if not constraints.annotations.numa_bind:
            return [passes]
        code = constraints.code
        if code not in self._numa:
            devices = self.get_devices(code)
            numbers = np.unique(devices.numa[devices.valid]).tolist()
            self._numa[code] = [devices.numa[0] == number for number in numbers[: _MAX_NUMA + 1]]
        groups = self._numa[code]
        return [passes & group for group in groups] if len(groups) <= _MAX_NUMA else [passes]


def fits_anywhere(
    by_vendor: Mapping[str, PodConstraints],
    requests: Sequence[VendorRequest],
    ids: Ints,
    passing: PassingDevices,
) -> bool:
    """Tell whether `decide` would choose one of these nodes. Arguments as of `find_candidates`."""
    is_large = len(ids) > _FIRST_RUN
    left = ids[find_candidates(by_vendor, requests, ids, passing)] if is_large else ids
    if is_large and _are_candidates_certain(by_vendor, requests, left):
        return left.size > 0
    # The order of trying changes nothing: it ends at the first run with a node that fits.
    return any(_has_fitting_node(by_vendor, requests, left[run]) for run in cut_growing_runs(len(left), _FIRST_RUN))


def _are_candidates_certain(
    by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints
) -> bool:
    """Tell whether the pod fits on each candidate: the checks of single devices are all that count.

    Several requests take from the same devices; a quota, a NUMA node and a topology count what was taken before.
    """
    if sum(request.asks for request in requests) > 1 or len(by_vendor) > 1:
        return False
    (constraints,) = by_vendor.values()
    (request,) = (request for request in requests if request.asks)
    device_request = build_device_request(request, constraints.annotations, constraints.vendor.family)
    counts_others = device_request.numa_bind or device_request.collects_all or constraints.quota_left.is_limited
    has_own_rule = constraints.vendor.family in VENDOR_FITS or bool(_find_exempt(by_vendor, ids).any())
    return not (counts_others or has_own_rule)


def cut_growing_runs(count: int, first: int) -> Iterator[slice]:
    """Cut ``count`` nodes into runs: the first of ``first`` nodes, each later one of four times as many.

    For callers that end at the first node that will do.
    """
    start, size = 0, first
    while start < count:
        yield slice(start, start + size)
        start, size = start + size, size * 4


def _has_fitting_node(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints) -> bool:
    first = next(iter(by_vendor.values()))
    for matrix in build_batches(first.columns, ids, first.code):
        evaluation = BatchEvaluation(by_vendor, matrix)
        for container, request in enumerate(requests):
            if request.asks and not evaluation.is_over:
                evaluation.judge(container, request)
        if not evaluation.is_over:
            return True
    return False


def find_candidates(
    by_vendor: Mapping[str, PodConstraints],
    requests: Sequence[VendorRequest],
    ids: Ints,
    passing: PassingDevices,
) -> Bools:
    """Mark the nodes of which enough devices pass the checks that read one device alone, shape (n,).

    On the other nodes the pod does not fit; on the candidates it may not fit either. Many times faster than the whole
    evaluation.

    ids: of the nodes, -1 where unregistered. by_vendor: constraints by vendor word. passing: of these columns.
    """
    could = ids >= 0
    # Of a cluster without a single device there are no columns to look at.
    if not could.any():
        return could
    for word, constraints in by_vendor.items():
        # The families in FITS have checks of their own, which may accept what these refuse.
        if constraints.vendor.family not in VENDOR_FITS:
            asking = [request for request in requests if request.asks and request.vendor == word]
            could &= _find_sufficient(constraints, asking, ids, passing)
    return could | (_find_exempt(by_vendor, ids) & (ids >= 0))


def find_largest_left(
    by_vendor: Mapping[str, PodConstraints],
    requests: Sequence[VendorRequest],
    ids: Ints,
    amount: Left,
    indices: Collection[int],
    passing: PassingDevices,
) -> int | None:
    """Find the amount above which the pod fits on none of these nodes, if each request at ``indices`` has more of it.

    None where the devices' columns do not tell. requests: with the least of the amount at these indices; the other
    arguments as of `find_candidates`.
    """
    ids = ids[find_candidates(by_vendor, requests, ids, passing)]
    asking = [requests[index] for index in indices]
    nodes = next(iter(by_vendor.values())).columns.nodes
    if not ids.size or nodes["size"][ids].max() > _MAX_WIDTH or _find_exempt(by_vendor, ids).any():
        return None
    if any(by_vendor[request.vendor].vendor.family in VENDOR_FITS for request in asking):
        return None
    return int(
        np.min(
            [_measure_left(by_vendor[request.vendor], request, ids, amount, passing) for request in asking], axis=0
        ).max()
    )


def _find_exempt(by_vendor: Mapping[str, PodConstraints], ids: Ints) -> Bools:
    """Mark the nodes of which the columns of the devices do not tell whether they have enough, shape (n,)."""
    exempt = np.zeros(len(ids), np.bool_)
    for constraints in by_vendor.values():
        # One MIG device may give several instances, and what the pod holds already is free for it.
        exempt |= constraints.columns.nodes["has_mig"][ids]
        if node := constraints.held_node:
            exempt |= ids == node.id
    return exempt


def _find_sufficient(
    constraints: PodConstraints, requests: Sequence[VendorRequest], ids: Ints, passing: PassingDevices
) -> Bools:
    """Mark the nodes where enough devices pass the checks for each request of this vendor, shape (n,)."""
    nodes = constraints.columns.nodes
    start = nodes["start"][ids]
    end = start + nodes["size"][ids]
    enough = np.ones(len(ids), np.bool_)
    for request in requests:
        passes = passing.find_passing(constraints, request)
        among = np.zeros(len(ids), np.bool_)
        # Row 0 is never a device, so the sum up to a row is that of all rows before a node's last one.
        so_far = np.zeros(len(passes) + 1, np.int32)
        for together in passing.group_by_numa(constraints, passes):
            np.cumsum(together, out=so_far[1:])
            among |= so_far[end] - so_far[start] >= request.count
        enough &= among
    return enough


def _measure_left(
    constraints: PodConstraints, request: VendorRequest, ids: Ints, amount: Left, passing: PassingDevices
) -> Ints:
    """Measure how much of the amount as many devices of each node have left as the request asks for, shape (n,)."""
    devices, passes = passing.get_devices(constraints.code), passing.find_passing(constraints, request)
    total, used = _COLUMNS[amount]
    left = np.where(passes, getattr(devices, total) - getattr(devices, used), -1)[0]
    start, size = (constraints.columns.nodes[name][ids] for name in ("start", "size"))
    slots = np.arange(int(size.max()))[:, None]
    # Shape (slots, n), as a matrix of devices is; row 0 is never a device.
    of_nodes = np.where(slots < size, left[np.where(slots < size, start + slots, 0)], -1)
    least: Ints = np.partition(of_nodes, -request.count, axis=0)[-request.count]
    return least

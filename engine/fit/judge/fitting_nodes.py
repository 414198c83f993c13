"""Whether a pod fits on any of many nodes, without scores, reasons or an allocation: for asking "what if" often."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints, all_devices, batches
from engine.fit.judge.checks.fit import early_checks, gate_checks, late_checks
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.request.device_request import device_request_of
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.fits import FITS

Left = Literal["memory_mib", "cores"]
"""An amount of a request that columns of the device table tell what is left of."""

_FIRST_RUN: Final = 64
"""Nodes that are evaluated first where one that fits is enough; four times as many each time after."""
_MAX_NUMA: Final = 16
"""Of clusters with more different numbers of NUMA nodes the quick answer does not look at them."""
_MAX_WIDTH: Final = 64
"""Devices of a node; with larger ones a matrix of all nodes would be mostly padding."""
_COLUMNS: Final = {"memory_mib": ("total_memory", "used_memory"), "cores": ("total_cores", "used_cores")}


class PassingDevices:
    """Which devices of a cluster pass the checks that read one device alone, of one pod after the other.

    What a check refuses is remembered: who asks what would be asks for almost the same each time. For as long as the
    columns of the devices do not change.
    """

    def __init__(self, columns: ClusterColumns) -> None:
        self._columns = columns
        self._devices: dict[int, DeviceMatrix] = {}
        self._accepted: dict[tuple[object, ...], Bools] = {}
        self._numa: dict[int, list[Bools]] = {}

    def devices(self, code: int) -> DeviceMatrix:
        """All of them. code: of the vendor whose devices are valid."""
        if code not in self._devices:
            self._devices[code] = all_devices(self._columns, code)
        return self._devices[code]

    def of(self, constraints: PodConstraints, request: VendorRequest) -> Bools:
        """Those that pass all of the checks, shape (device rows,)."""
        family, devices = constraints.vendor.family, self.devices(constraints.code)
        asked = device_request_of(request, constraints.annotations, family)
        checks = (
            *gate_checks(devices, constraints.accepts_kind, family),
            *early_checks(devices, asked, constraints.accepts_uuid(devices)),
            *late_checks(devices, asked, partial(asked.memory_of, devices.total_memory)),
        )
        passes: Bools = devices.valid[0].copy()
        for check in checks:
            if check.key not in self._accepted:
                self._accepted[check.key] = ~check.refuses()[0]
            passes &= self._accepted[check.key]
        return passes

    def together(self, constraints: PodConstraints, passes: Bools) -> list[Bools]:
        """The devices that pass, in one group for each NUMA node where the pod's have to be on the same one."""
        if not constraints.annotations.numa_bind:
            return [passes]
        code = constraints.code
        if code not in self._numa:
            devices = self.devices(code)
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
    """Whether `decide` would choose one of these nodes. Arguments as of `could_fit`."""
    is_large = len(ids) > _FIRST_RUN
    left = ids[could_fit(by_vendor, requests, ids, passing)] if is_large else ids
    if is_large and _could_is_does(by_vendor, requests, left):
        return left.size > 0
    # The order of trying changes nothing: it ends at the first run with a node that fits.
    return any(_passed(by_vendor, requests, left[run]) for run in growing_runs(len(left), _FIRST_RUN))


def _could_is_does(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints) -> bool:
    """Whether the pod fits on each of these nodes that `could_fit`: where the checks of single devices are all.

    Several requests take from the same devices; a quota, a NUMA node and a topology count what was taken before.
    """
    if sum(request.asks for request in requests) > 1 or len(by_vendor) > 1:
        return False
    (constraints,) = by_vendor.values()
    (request,) = (request for request in requests if request.asks)
    asked = device_request_of(request, constraints.annotations, constraints.vendor.family)
    counts_others = asked.numa_bind or asked.collects_all or constraints.quota_left.is_limited
    has_own_rule = constraints.vendor.family in FITS or bool(_exempt(by_vendor, ids).any())
    return not (counts_others or has_own_rule)


def growing_runs(count: int, first: int) -> Iterator[slice]:
    """``count`` nodes in runs, for who ends at the first that will do: ``first`` of them, then four times as many."""
    start, size = 0, first
    while start < count:
        yield slice(start, start + size)
        start, size = start + size, size * 4


def _passed(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints) -> bool:
    first = next(iter(by_vendor.values()))
    for matrix in batches(first.columns, ids, first.code):
        evaluation = BatchEvaluation(by_vendor, matrix)
        for request in requests:
            if request.asks and not evaluation.is_over:
                evaluation.judge(request)
        if not evaluation.is_over:
            return True
    return False


def could_fit(
    by_vendor: Mapping[str, PodConstraints],
    requests: Sequence[VendorRequest],
    ids: Ints,
    passing: PassingDevices,
) -> Bools:
    """False for nodes of which too few devices pass the checks that read one device alone, shape (n,).

    On those the pod does not fit; on the others it may not fit either. Many times faster than the whole evaluation.

    ids: of the nodes, -1 where unregistered. by_vendor: constraints by vendor word. passing: of these columns.
    """
    could = ids >= 0
    # Of a cluster without a single device there are no columns to look at.
    if not could.any():
        return could
    for word, constraints in by_vendor.items():
        # The families in FITS have checks of their own, which may accept what these refuse.
        if constraints.vendor.family not in FITS:
            asked = [request for request in requests if request.asks and request.vendor == word]
            could &= _have_enough(constraints, asked, ids, passing)
    return could | (_exempt(by_vendor, ids) & (ids >= 0))


def max_left(
    by_vendor: Mapping[str, PodConstraints],
    requests: Sequence[VendorRequest],
    ids: Ints,
    amount: Left,
    places: Collection[int],
    passing: PassingDevices,
) -> int | None:
    """With more of this amount in each of the requests at ``places`` the pod fits on none of these nodes.

    None where the devices' columns do not tell. requests: with the least of the amount at these places; the other
    arguments as of `could_fit`.
    """
    ids = ids[could_fit(by_vendor, requests, ids, passing)]
    asked = [requests[place] for place in places]
    nodes = next(iter(by_vendor.values())).columns.nodes
    if not ids.size or nodes["size"][ids].max() > _MAX_WIDTH or _exempt(by_vendor, ids).any():
        return None
    if any(by_vendor[request.vendor].vendor.family in FITS for request in asked):
        return None
    return int(
        np.min(
            [_left_on_each(by_vendor[request.vendor], request, ids, amount, passing) for request in asked], axis=0
        ).max()
    )


def _exempt(by_vendor: Mapping[str, PodConstraints], ids: Ints) -> Bools:
    """Nodes of which the columns of the devices do not tell whether they have enough, shape (n,)."""
    exempt = np.zeros(len(ids), np.bool_)
    for constraints in by_vendor.values():
        # One MIG device may give several instances, and what the pod holds already is free for it.
        exempt |= constraints.columns.nodes["has_mig"][ids]
        if own := constraints.own_node:
            exempt |= ids == own.id
    return exempt


def _have_enough(
    constraints: PodConstraints, requests: Sequence[VendorRequest], ids: Ints, passing: PassingDevices
) -> Bools:
    """Whether as many devices of each node pass the checks as each request of this vendor asks for, shape (n,)."""
    nodes = constraints.columns.nodes
    start = nodes["start"][ids]
    end = start + nodes["size"][ids]
    enough = np.ones(len(ids), np.bool_)
    for request in requests:
        passes = passing.of(constraints, request)
        among = np.zeros(len(ids), np.bool_)
        # Row 0 is never a device, so the sum up to a row is that of all rows before a node's last one.
        so_far = np.zeros(len(passes) + 1, np.int32)
        for together in passing.together(constraints, passes):
            np.cumsum(together, out=so_far[1:])
            among |= so_far[end] - so_far[start] >= request.count
        enough &= among
    return enough


def _left_on_each(
    constraints: PodConstraints, request: VendorRequest, ids: Ints, amount: Left, passing: PassingDevices
) -> Ints:
    """How much of the amount as many devices of each node have left as the request asks for, shape (n,)."""
    devices, passes = passing.devices(constraints.code), passing.of(constraints, request)
    total, used = _COLUMNS[amount]
    left = np.where(passes, getattr(devices, total) - getattr(devices, used), -1)[0]
    start, size = (constraints.columns.nodes[name][ids] for name in ("start", "size"))
    slots = np.arange(int(size.max()))[:, None]
    # Shape (slots, n), as a matrix of devices is; row 0 is never a device.
    of_nodes = np.where(slots < size, left[np.where(slots < size, start + slots, 0)], -1)
    found: Ints = np.partition(of_nodes, -request.count, axis=0)[-request.count]
    return found

"""Number of copies of one pod that each node takes, one after the other, by the fit itself.

A copy is judged as `decide` judges the pod, on what the copies before it leave. The copies of one node do not change
another one, so all nodes take their next copy at once.

Where every check reads one device alone, each device takes some number of shares, its capacity. The capacities of a
node's devices bound the number of copies from both sides; the order in which HAMi tries the devices is asked only while
the bounds differ.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import MATRICES, Bools, DeviceMatrix, Ints, build_batches
from engine.fit.judge.checks.fit import check_devices, check_gate, restore_order
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.choose.scoring import derive_order, score_devices
from engine.fit.judge.choose.vendor_scores import complete_vendors
from engine.fit.judge.decide import list_constraints
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.judge.fitting_nodes import PassingDevices, find_candidates
from engine.fit.judge.request.device_request import DeviceRequest, build_device_request
from engine.fit.judge.request.pod_annotations import WeightsError
from engine.fit.judge.request.pod_constraints import PodConstraints, give_back
from engine.fit.judge.request.pod_request import VendorRequest, deny_requests, list_requests
from engine.fit.judge.vendors.fits import VENDOR_FITS
from engine.hami.go_values import to_mapping

_IDENTITY: Final = ("rows", "is_mig")
"""Columns that do not tell how devices are judged; nodes with MIG devices are never taken for equal."""


class CopyCounter:
    """Counts copies on the columns as they are now; valid for as long as they do not change."""

    def __init__(self, columns: ClusterColumns, policy: SchedulingPolicy) -> None:
        self._columns, self._policy = columns, policy
        self._passing = PassingDevices(columns)

    def count_copies(self, pod: Mapping[str, Any], node_names: Sequence[str], limit: int) -> Ints | None:
        """Count the copies on each node, shape (n,), at most ``limit`` on one.

        None where a copy on one node decides about another (a quota), and where copies can't be counted node by node:
        several containers that ask for devices, init containers, vendors with rules of their own.
        """
        requests = list_requests(pod, complete_vendors(self._columns))
        asking = [request for request in requests if request.asks]
        if len(asking) != 1 or asking[0].is_init or deny_requests(requests):
            return None
        try:
            by_vendor = dict(list_constraints(self._columns, to_mapping(pod.get("metadata")), asking, self._policy))
        except WeightsError:
            return None
        constraints = by_vendor.get(asking[0].vendor)
        if constraints is None or constraints.quota_left.is_limited or constraints.vendor.family in VENDOR_FITS:
            return None
        ids = self._columns.look_up_ids(node_names)
        candidates = np.flatnonzero(find_candidates(by_vendor, asking, ids, self._passing))
        counts = np.zeros(len(ids), np.int64)
        for matrix in build_batches(self._columns, ids[candidates], constraints.code):
            counts[candidates[matrix.nodes]] = _count_on_matrix(by_vendor, constraints, asking[0], matrix, limit)
        return counts


def _count_on_matrix(
    by_vendor: Mapping[str, PodConstraints],
    constraints: PodConstraints,
    request: VendorRequest,
    matrix: DeviceMatrix,
    limit: int,
) -> Ints:
    """Count the copies on each node of a matrix, shape (n,)."""
    device_request = build_device_request(request, constraints.annotations, constraints.vendor.family)
    is_apart = _find_nodes_of_single_devices(constraints, device_request, matrix)
    by_device, others = np.flatnonzero(is_apart), np.flatnonzero(~is_apart)
    counts = np.zeros(len(matrix.ids), np.int64)
    if by_device.size:
        some = matrix.select(by_device) if others.size else matrix
        counts[by_device] = np.minimum(_count_by_capacity(constraints, device_request, some), limit)
    if others.size:
        some = matrix.select(others) if by_device.size else matrix
        counts[others] = _count_by_evaluation(by_vendor, constraints, request, some, limit)
    return counts


def _find_nodes_of_single_devices(constraints: PodConstraints, request: DeviceRequest, matrix: DeviceMatrix) -> Bools:
    """Find the nodes where every check reads one device alone, and what a copy takes is never negative; shape (n,)."""
    if constraints.one_by_one or request.numa_bind or request.collects_all or request.cores < 0:
        return np.zeros(len(matrix.ids), np.bool_)
    is_taken = (request.resolve_memory(matrix.total_memory) >= 0).all(axis=0)
    return ~constraints.columns.nodes["has_mig"][matrix.ids] & is_taken


def _count_by_capacity(constraints: PodConstraints, request: DeviceRequest, matrix: DeviceMatrix) -> Ints:
    """Count the copies by the capacity of single devices, and by the order of trying where that decides; shape (n,)."""
    give_back(constraints, matrix)
    memory = request.resolve_memory(matrix.total_memory)
    capacity = _measure_capacity(constraints, request, matrix, memory)
    counts, nodes = np.zeros(len(matrix.ids), np.int64), np.arange(len(matrix.ids))
    while True:
        lower, upper = _bound_copies(capacity, request.count)
        is_open = lower < upper
        counts[nodes[~is_open]] += lower[~is_open]
        if not is_open.any():
            return counts
        if not is_open.all():
            where = np.flatnonzero(is_open)
            matrix, capacity, memory, nodes = matrix.select(where), capacity[:, where], memory[:, where], nodes[where]
        taken = _take_next(constraints, request, matrix, capacity > 0)
        matrix.used_slots += taken
        matrix.used_cores += taken * request.cores
        matrix.used_memory += taken * memory
        capacity -= taken
        counts[nodes] += 1


def _measure_capacity(constraints: PodConstraints, request: DeviceRequest, matrix: DeviceMatrix, memory: Ints) -> Ints:
    """Measure the number of shares that each device takes, shape (slots, n), by the checks themselves.

    What a device takes only grows, and every check that refuses it once refuses it from then on: a search by halves.
    """
    gate = check_gate(matrix, constraints.accepts_kind, constraints.vendor.family)
    accepts_uuid = constraints.match_uuids(matrix)
    held = matrix.used_slots, matrix.used_cores, matrix.used_memory
    # The check of slots is every family's, so no device takes more shares than it has free slots.
    lower, upper = np.zeros_like(memory), np.maximum(matrix.total_slots - matrix.used_slots, 0) * matrix.valid
    while (upper > lower).any():
        middle = (lower + upper + 1) // 2
        earlier = middle - 1
        matrix.used_slots = held[0] + earlier
        matrix.used_cores = held[1] + earlier * request.cores
        matrix.used_memory = held[2] + earlier * memory
        refusals = check_devices(matrix, request, gate, accepts_uuid)
        takes = (refusals.early == 0) & (refusals.late == 0)
        is_open = upper > lower
        lower, upper = np.where(is_open & takes, middle, lower), np.where(is_open & ~takes, earlier, upper)
    matrix.used_slots, matrix.used_cores, matrix.used_memory = held
    return lower


def _bound_copies(capacity: Ints, count: int) -> tuple[Ints, Ints]:
    """Bound the copies of a node whose devices have this capacity, each on ``count`` of them; both of shape (n,).

    Lower: copies end when fewer than ``count`` devices have capacity left. Then all others are full, the largest of
    them by as many copies as its capacity, and all together by at most ``count`` shares of each copy. Upper: j devices
    give a copy at most one share each, so all others give it the rest.
    """
    slots = len(capacity)
    if slots < count:
        none = np.zeros(capacity.shape[1], np.int64)
        return none, none
    ascending = np.sort(capacity, axis=0)
    sums = np.cumsum(ascending, axis=0)
    others = slots - count
    lower = np.maximum(ascending[others], -(-sums[others] // count))
    upper = np.minimum.reduce([sums[slots - 1 - largest] // (count - largest) for largest in range(count)])
    return lower, upper


def _take_next(constraints: PodConstraints, request: DeviceRequest, matrix: DeviceMatrix, would_do: Bools) -> Bools:
    """Take the devices of the next copy on each node, shape (slots, n), in the order of trying."""
    counts_request = constraints.counts_request[matrix.kind]
    scores = score_devices(matrix, request, constraints.annotations.weights, counts_request)
    turns = derive_order(matrix, scores, constraints.annotations)
    by_turn = np.take_along_axis(would_do, turns, axis=0)
    return restore_order(by_turn & (np.cumsum(by_turn, axis=0) <= request.count), turns)


def _count_by_evaluation(
    by_vendor: Mapping[str, PodConstraints],
    constraints: PodConstraints,
    request: VendorRequest,
    matrix: DeviceMatrix,
    limit: int,
) -> Ints:
    """Count the copies by judging one after the other, shape (n,); nodes in the same state are judged once."""
    firsts, states = _group_states(constraints, matrix)
    distinct = matrix.select(firsts)
    distinct.nodes = np.arange(len(firsts))
    counts = np.zeros(len(firsts), np.int64)
    evaluation = BatchEvaluation(by_vendor, distinct)
    for _ in range(limit):
        if evaluation.is_over:
            break
        evaluation.judge(0, request)
        counts[evaluation.passed] += 1
    taken: Ints = counts[states]
    return taken


def _group_states(constraints: PodConstraints, matrix: DeviceMatrix) -> tuple[Ints, Ints]:
    """Group nodes that every rule judges alike: positions of the first of each group, and the group of each node."""
    count = len(matrix.ids)
    is_by_name = constraints.accepts_row is not None or constraints.annotations.numa_bind
    if is_by_name or "topology" in constraints.annotations.device_policy:
        return np.arange(count), np.arange(count)
    fields = [getattr(matrix, name) for name in MATRICES if name not in _IDENTITY]
    has_mig = constraints.columns.nodes["has_mig"][matrix.ids]
    table = np.vstack([*fields, matrix.size, np.where(has_mig, matrix.ids, 0)]).T
    groups: dict[bytes, int] = {}
    keys = (row.tobytes() for row in np.ascontiguousarray(table))
    states = np.fromiter((groups.setdefault(key, len(groups)) for key in keys), np.int64, count)
    firsts = np.full(len(groups), count)
    np.minimum.at(firsts, states, np.arange(count))
    return firsts, states

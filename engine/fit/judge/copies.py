"""Number of copies of one pod that each node takes, one after the other, by the fit itself.

A copy is judged as `decide` judges the pod, on what the copies before it leave. The copies of one node do not change
another one, so all nodes take their next copy at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import MATRICES, DeviceMatrix, Ints, build_batches
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.choose.vendor_scores import complete_vendors
from engine.fit.judge.decide import list_constraints
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.judge.fitting_nodes import PassingDevices, find_candidates
from engine.fit.judge.request.pod_annotations import WeightsError
from engine.fit.judge.request.pod_constraints import PodConstraints
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
    """Count the copies on each node of a matrix, shape (n,); nodes in the same state are judged once."""
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

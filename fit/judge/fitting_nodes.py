"""Whether a pod fits on any of many nodes, without scores, reasons or an allocation: for asking "what if" often."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fit.judge.batch_evaluation import BatchEvaluation
from fit.judge.device_matrix import Bools, Ints, all_devices, batches
from fit.judge.device_request import device_request_of
from fit.judge.fit import check, gate
from fit.judge.pod_constraints import PodConstraints
from fit.judge.request import VendorRequest
from fit.vendors.fits import FITS

_FIRST_RUN: Final = 64
"""Nodes that are evaluated first where one that fits is enough; four times as many each time after."""


def fits_anywhere(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints) -> bool:
    """Whether `decide` would choose one of these nodes. Arguments as of `could_fit`."""
    # The order of trying changes nothing: it ends at the first run with a node that fits.
    left = ids[could_fit(by_vendor, requests, ids)] if len(ids) > _FIRST_RUN else ids
    size = _FIRST_RUN
    while left.size:
        if _passed(by_vendor, requests, left[:size]):
            return True
        left, size = left[size:], size * 4
    return False


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


def could_fit(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], ids: Ints) -> Bools:
    """False for nodes of which too few devices pass the checks that read one device alone, shape (n,).

    On those the pod does not fit; on the others it may not fit either. Many times faster than the whole evaluation.

    ids: of the nodes, -1 where unregistered. by_vendor: constraints by vendor word.
    """
    could = ids >= 0
    exempt = np.zeros(len(ids), np.bool_)
    for word, constraints in by_vendor.items():
        nodes = constraints.columns.nodes
        # The families in FITS have checks of their own, which may accept what these refuse.
        if constraints.vendor.family not in FITS:
            could &= _have_enough(constraints, [each for each in requests if each.asks and each.vendor == word], ids)
        # One MIG device may give several instances, and what the pod holds already is free for it.
        exempt |= nodes["has_mig"][ids]
        if own := constraints.own_node:
            exempt |= ids == own.id
    return could | (exempt & (ids >= 0))


def _have_enough(constraints: PodConstraints, requests: Sequence[VendorRequest], ids: Ints) -> Bools:
    """Whether as many devices of each node pass the checks as each request of this vendor asks for, shape (n,)."""
    nodes, family = constraints.columns.nodes, constraints.vendor.family
    start = nodes["start"][ids]
    end = start + nodes["size"][ids]
    devices = all_devices(constraints.columns, constraints.code)
    gated = gate(devices, constraints.accepts_kind, family)
    enough = np.ones(len(ids), np.bool_)
    for request in requests:
        asked = device_request_of(request, constraints.annotations, family)
        checks = check(devices, asked, gated, constraints.accepts_uuid(devices))
        passes = (checks.early == 0) & (checks.late == 0) & devices.valid
        # Row 0 is never a device, so the sum up to a row is that of all rows before a node's last one.
        so_far = np.concatenate([np.zeros(1, np.int64), np.cumsum(passes[0])])
        enough &= so_far[end] - so_far[start] >= asked.count
    return enough

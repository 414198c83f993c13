"""What single vendors add to the scores of nodes, and the table of vendors as the nodes complete it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_entry import NodeEntry
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.fit.judge.vendors.node_scores import SCORED, Before, Scored, vendor_score
from engine.fit.judge.vendors.vendor_state import VendorState
from engine.hami.vendor_catalog import NEURON
from engine.hami.vendors import Family, Vendor, Vendors


def vendor_scores(
    by_vendor: Mapping[str, PodConstraints], nodes: Sequence[tuple[int, VendorState]]
) -> NDArray[np.float32]:
    """For each node, by its id, what its devices add; nodes: those that fit, with what the pod would get there."""
    more = np.zeros(len(nodes), np.float32)
    constraints = next(iter(by_vendor.values()))
    # HAMi asks Metax' whole devices of every node that has them.
    vendors = [
        vendor
        for vendor in constraints.columns.vendors
        if vendor.family in SCORED and (vendor.word in by_vendor or vendor.family is Family.METAX_GPU)
    ]
    for place, (node, state) in enumerate(nodes if vendors else ()):
        (entry,) = constraints.columns.entries([node])
        more[place] = sum(_score(vendor, by_vendor, constraints, entry, state) for vendor in vendors)
    return more


def _score(
    vendor: Vendor,
    by_vendor: Mapping[str, PodConstraints],
    constraints: PodConstraints,
    entry: NodeEntry,
    state: VendorState,
) -> np.float32:
    before = _before(constraints, entry)
    if vendor.word not in by_vendor and vendor.word not in {device.model for device in before}:
        return np.float32(0)
    given = [picks for _, picks in state.given.get((vendor.word, entry.id), ())]
    annotations = constraints.annotations
    return vendor_score(Scored(vendor, given, before, annotations.texts, entry.marks, annotations.node_policy))


def _before(constraints: PodConstraints, entry: NodeEntry) -> list[Before]:
    """The node's devices before the pod, without what it holds already."""
    own = constraints.own
    mine = own.by_uuid if own and entry is constraints.own_node else {}
    found = []
    for position, device in enumerate(entry.devices.registration.devices):
        row = entry.start + position
        used = int(constraints.columns.devices["used_slots"][row])
        used -= mine[device.uuid].slots if device.uuid in mine else 0
        classes = constraints.classes(entry, row)
        found.append(Before(position, device.index, device.model, used > 0, dict(device.extra), classes))
    return found


def observed(columns: ClusterColumns) -> Vendors:
    """The table of vendors, with the cores of a Neuron device, which HAMi learns from the nodes."""
    if not any(vendor.family is Family.NEURON for vendor in columns.vendors):
        return columns.vendors
    cores = next((kind.slots for kind in columns.kinds if kind.vendor == NEURON.word), 0)
    return tuple(
        replace(vendor, amounts=replace(vendor.amounts, default_cores=cores))
        if vendor.family is Family.NEURON
        else vendor
        for vendor in columns.vendors
    )

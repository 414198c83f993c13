"""Additions of single vendors to the scores of nodes, and the table of vendors as the nodes complete it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_entry import NodeEntry
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.fit.judge.vendors.node_scores import SCORED, DeviceBefore, ScoredNode, score_vendor
from engine.fit.judge.vendors.vendor_state import VendorState
from engine.hami.vendor_catalog import NEURON
from engine.hami.vendors import Family, Vendor, Vendors


def score_vendors(
    by_vendor: Mapping[str, PodConstraints], nodes: Sequence[tuple[int, VendorState]]
) -> NDArray[np.float32]:
    """Score each node, by its id, by what its devices' vendors add.

    nodes: those that fit, with what the pod would get there.
    """
    scores = np.zeros(len(nodes), np.float32)
    constraints = next(iter(by_vendor.values()))
    models = {kind.model for kind in constraints.columns.kinds}
    # HAMi asks Metax' whole devices of every node that has them.
    vendors = [
        vendor
        for vendor in constraints.columns.vendors
        if vendor.family in SCORED
        and (vendor.word in by_vendor or (vendor.family is Family.METAX_GPU and vendor.word in models))
    ]
    for position, (node, state) in enumerate(nodes if vendors else ()):
        (entry,) = constraints.columns.get_entries([node])
        scores[position] = sum(_score_vendor(vendor, by_vendor, constraints, entry, state) for vendor in vendors)
    return scores


def _score_vendor(
    vendor: Vendor,
    by_vendor: Mapping[str, PodConstraints],
    constraints: PodConstraints,
    entry: NodeEntry,
    state: VendorState,
) -> np.float32:
    before = _list_devices_before(constraints, entry)
    if vendor.word not in by_vendor and vendor.word not in {device.model for device in before}:
        return np.float32(0)
    containers = [picks for _, picks in state.picks.get((vendor.word, entry.id), ())]
    annotations = constraints.annotations
    return score_vendor(ScoredNode(vendor, containers, before, annotations.texts, entry.marks, annotations.node_policy))


def _list_devices_before(constraints: PodConstraints, entry: NodeEntry) -> list[DeviceBefore]:
    """List the node's devices before the pod, without what it holds already."""
    held = constraints.held
    held_devices = held.by_uuid if held and entry is constraints.held_node else {}
    devices = []
    for position, device in enumerate(entry.devices.registration.devices):
        row = entry.start + position
        used = int(constraints.columns.devices["used_slots"][row])
        used -= held_devices[device.uuid].slots if device.uuid in held_devices else 0
        classes = constraints.list_classes(entry, row)
        devices.append(DeviceBefore(position, device.index, device.model, used > 0, dict(device.extra), classes))
    return devices


def complete_vendors(columns: ClusterColumns) -> Vendors:
    """Complete the table of vendors with the cores of a Neuron device, which HAMi learns from the nodes."""
    if not any(vendor.family is Family.NEURON for vendor in columns.vendors):
        return columns.vendors
    cores = next((kind.slots for kind in columns.kinds if kind.vendor == NEURON.word), 0)
    return tuple(
        replace(vendor, amounts=replace(vendor.amounts, default_cores=cores))
        if vendor.family is Family.NEURON
        else vendor
        for vendor in columns.vendors
    )

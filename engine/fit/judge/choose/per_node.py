"""Fit of the nodes that are judged one device at a time: those with MIG devices, and the chosen node."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.devices.node_entry import NodeEntry
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.checks.fit import FirstRefusals
from engine.fit.judge.checks.reference_fit import NO_PEAKS, DeviceState, Peaks, ReferenceFit, fit_node
from engine.fit.judge.checks.sequential_fit import QuotaColumns
from engine.fit.judge.request.device_request import DeviceRequest
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.asking import NodeRequest
from engine.fit.judge.vendors.fits import VENDOR_FITS
from engine.fit.judge.vendors.metax import QOS
from engine.fit.judge.vendors.vendor_state import VendorState
from engine.hami.mig import Placement
from engine.hami.vendors import Family

Placed = Mapping[int, Sequence[Placement]]
"""MIG instances that the pod's own containers took so far, by device row."""


def fit_node_by_node(
    constraints: PodConstraints,
    matrix: DeviceMatrix,
    request: DeviceRequest,
    refusals: FirstRefusals,
    order: Ints,
    quota: QuotaColumns | None,
    placed: Placed,
    peaks: Peaks | None = None,
) -> list[ReferenceFit]:
    """Fit each node of `matrix`; order (slots, n) as `derive_order` returns it.

    Nodes that are equal in everything the fit reads share one result, whose picks name the devices of the first of
    them: in a cluster of equal nodes this is one evaluation instead of thousands.
    """
    table = _build_table(constraints, matrix, refusals, order)
    quotas = np.column_stack([quota.memory, quota.cores]) if quota else np.zeros((len(table), 0), np.int64)
    fits: dict[Hashable, ReferenceFit] = {}
    node_fits = []
    for entry, numbers, left in zip(constraints.columns.get_entries(matrix.ids.tolist()), table, quotas, strict=True):
        held = peaks.get_peaks(constraints.vendor.word, entry.id) if peaks else NO_PEAKS
        mig, pairs = _build_mig_key(constraints, entry, placed), _build_pair_key(entry, request)
        key = (numbers.tobytes(), left.tobytes(), mig, pairs, tuple(held.items()))
        if key not in fits:
            quota_left = QuotaLeft(*left.tolist()) if quota else QuotaLeft()
            devices = _build_devices(constraints, entry, numbers, placed)
            fits[key] = fit_node(
                devices, request, quota_left, entry.devices.pair_scores, None if peaks is None else held
            )
        node_fits.append(fits[key])
    return node_fits


def fit_by_vendor(
    constraints: PodConstraints,
    matrix: DeviceMatrix,
    request: DeviceRequest,
    raw: VendorRequest,
    refusals: FirstRefusals,
    order: Ints,
    state: VendorState,
) -> list[ReferenceFit]:
    """Fit each node by the rules of a vendor that has its own (`engine/fit/judge/vendors`)."""
    table = _build_table(constraints, matrix, refusals, order)
    fit_vendor = VENDOR_FITS[constraints.vendor.family]
    fits: dict[Hashable, ReferenceFit] = {}
    node_fits = []
    for entry, numbers in zip(constraints.columns.get_entries(matrix.ids.tolist()), table, strict=True):
        earlier = state.list_earlier(constraints.vendor.word, entry.id, is_init=raw.is_init)
        changed = {} if raw.is_init else state.list_changed_qos(entry)
        classes = tuple((row - entry.start, tuple(words)) for row, words in entry.classes.items() if words)
        marks = tuple(entry.marks.items())
        held = entry.id if entry is constraints.held_node else None
        key = (numbers.tobytes(), entry.peculiar, classes, marks, earlier, tuple(changed.items()), held)
        if key not in fits:
            devices = _build_devices(constraints, entry, numbers, {})
            for device in devices:
                _add_peculiar(device, entry, constraints, changed)
            node_request = NodeRequest(
                constraints.vendor, request, raw, constraints.annotations.texts, entry.marks, earlier
            )
            fits[key] = fit_vendor(devices, node_request)
        node_fits.append(fits[key])
    return node_fits


def _add_peculiar(
    device: DeviceState, entry: NodeEntry, constraints: PodConstraints, changed: Mapping[int, str]
) -> None:
    row = entry.start + device.position
    registered = entry.get_device(row)
    device.index, device.extra = registered.index, dict(registered.extra)
    if device.position in changed:
        device.extra = {**device.extra, QOS: changed[device.position]}
    device.classes = constraints.list_classes(entry, row)


def _build_table(constraints: PodConstraints, matrix: DeviceMatrix, refusals: FirstRefusals, order: Ints) -> Ints:
    """Build the numbers that the fit reads, shape (n, 11, slots).

    They are the order of trying, validity, and the numbers of `DeviceState`.
    """
    accepts = constraints.match_uuids(matrix)
    allowed = matrix.valid if accepts is None else accepts
    columns = (
        *(order, matrix.valid, refusals.gate, allowed, matrix.numa, matrix.total_slots, matrix.used_slots),
        *(matrix.total_cores, matrix.used_cores, matrix.total_memory, matrix.used_memory),
    )
    return np.stack(columns, dtype=np.int64).transpose(2, 0, 1)


def _build_mig_key(constraints: PodConstraints, entry: NodeEntry, placed: Placed) -> Hashable:
    """Build a key of the node's MIG profiles and instances: equal keys, equal results.

    The node where the pod itself holds a part gets a key of its own, since that part is free for this pod.
    """
    if entry is constraints.held_node:
        return entry.id
    standing = tuple((row - entry.start, tuple(places)) for row, places in sorted(entry.held.items()) if places)
    taken = [(slot, tuple(placed[row])) for slot, row in enumerate(entry.block) if row in placed] if placed else []
    return entry.cuts, standing, tuple(taken)


def _build_pair_key(entry: NodeEntry, request: DeviceRequest) -> bytes:
    return entry.pairs.tobytes() if request.collects_all and entry.pairs is not None else b""


def _build_devices(constraints: PodConstraints, entry: NodeEntry, numbers: Ints, placed: Placed) -> list[DeviceState]:
    """Build working copies of a node's devices in the order of trying; numbers: its part of `_build_table`."""
    order, valid, *_ = numbers.tolist()
    rows = list(zip(*numbers[2:].tolist(), strict=True))
    return [_build_device(constraints, entry, slot, rows[slot], placed) for slot in order if valid[slot]]


def _build_device(
    constraints: PodConstraints, entry: NodeEntry, slot: int, numbers: tuple[int, ...], placed: Placed
) -> DeviceState:
    gate, accepts_uuid, numa, total_slots, used_slots, total_cores, used_cores, total_memory, used_memory = numbers
    device = DeviceState(
        slot,
        entry.fragment.uuids[slot],
        gate,
        bool(accepts_uuid),
        numa,
        total_slots,
        used_slots,
        total_cores,
        used_cores,
        total_memory,
        used_memory,
    )
    row = entry.start + slot
    registered = entry.get_device(row)
    device.index, device.model = registered.index, registered.model
    # Another vendor's device of this mode is given as a whole.
    if entry.is_mig(row) and constraints.vendor.family in (Family.NVIDIA, Family.CUSTOM):
        device.is_mig = True
        device.profiles = entry.get_profiles(row)
        device.placements = [*constraints.list_standing(entry, row), *placed.get(row, ())]
    return device

"""Cluster as an attempt saw it, from the records about the attempt and the states that they refer to. Pure.

Judging the pod again on what `rebuild_columns` returns gives the same verdicts, with two exceptions that the records do
not hold: quotas of namespaces, which the caller applies to the columns, and why a node is not registered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_columns import USED
from engine.fit.devices.node_entry import NodeEntry
from engine.hami.mig import MigProfile, Placement
from engine.hami.node_registration import NodeDevices
from engine.hami.registration import Device, Registration, decode_extra
from engine.hami.vendors import ONLY_NVIDIA, Vendors, find_code
from schemas.events import NO_STATE, DeviceKind, DevicesJudged, NodesJudged, NodeStateChanged, StateOf


@dataclass(frozen=True, slots=True)
class AttemptCluster:
    """Nodes that an attempt was offered.

    states: by node, None for one that was not registered, in the order in which they were offered. unknown: the nodes
    whose state the lookup does not have; without them the cluster is not the one that was judged.
    """

    states: Mapping[str, NodeStateChanged | None]
    unknown: tuple[str, ...]


def look_up_cluster(records: Iterable[DevicesJudged | NodesJudged], state_of: StateOf) -> AttemptCluster:
    """Look up the nodes of an attempt by all its device and node records, in any order.

    state_of: of the scheduler and epoch that the records name.
    """
    revisions: dict[str, int] = {}
    offered: dict[int, list[str]] = {}
    for record in records:
        if isinstance(record, NodesJudged):
            offered[record.part] = record.nodes
        else:
            # Every container names a node with the same revision: one decision sees one state of each.
            revisions |= zip(record.nodes, record.revision.tolist(), strict=True)
    names = [name for part in sorted(offered) for name in offered[part]]
    # Where node records are missing, those that were judged device by device are still known.
    referred = {name: revisions.get(name, NO_STATE) for name in [*names, *revisions]}
    states = {name: state_of(name, revision) if revision != NO_STATE else None for name, revision in referred.items()}
    unknown = tuple(name for name, state in states.items() if state is None and referred[name] != NO_STATE)
    return AttemptCluster(states, unknown)


def rebuild_columns(states: Iterable[NodeStateChanged], vendors: Vendors = ONLY_NVIDIA) -> ClusterColumns:
    """Rebuild the devices in these states, with what is in use of them, for `decide`. vendors: of the scheduler."""
    columns = ClusterColumns(vendors)
    for state in states:
        if state.uuid:
            put(columns, state)
    return columns


def put(columns: ClusterColumns, state: NodeStateChanged) -> None:
    """Put this state in place of what the columns have of the node."""
    register_devices(columns, state)
    if entry := columns.get_entry(state.node):
        _fill_use(columns, entry, state)


def register_devices(columns: ClusterColumns, state: NodeStateChanged) -> None:
    """Register the devices of this state; in use of them is what the pods of the columns hold."""
    if not state.uuid:
        columns.delete_node(state.node)
        return
    columns.register(state.node, _build_devices(state, columns.vendors))
    if entry := columns.get_entry(state.node):
        columns.devices["is_cordoned"][entry.rows_slice] = np.array(state.cordoned, np.bool_)
        entry.marks = dict(state.annotations)


def _build_devices(state: NodeStateChanged, vendors: Vendors) -> NodeDevices:
    kinds = [state.kinds[code] for code in state.kind.tolist()]
    extra = {field.device: decode_extra(field.registered) for field in state.vendor_fields}
    rows = zip(state.uuid, state.index.tolist(), state.numa.tolist(), state.healthy, kinds, strict=True)
    devices = tuple(
        Device(
            uuid,
            index,
            kind.slots or 0,
            kind.memory_mib or 0,
            kind.cores_percent or 0,
            kind.model,
            numa,
            kind.mode,
            is_healthy,
            _build_profiles(kind),
            extra.get(position, ()),
        )
        for position, (uuid, index, numa, is_healthy, kind) in enumerate(rows)
    )
    codes = tuple(find_code(vendors, kind.vendor) if kind.vendor else 0 for kind in kinds)
    return NodeDevices(Registration(devices, "json"), _build_pair_scores(state), codes)


def _build_profiles(kind: DeviceKind) -> tuple[MigProfile, ...]:
    return tuple(
        MigProfile(
            profile.name,
            profile.memory_mib,
            profile.cores_percent,
            profile.slices,
            tuple(Placement(start, size) for start, size in profile.placements),
        )
        for profile in kind.mig_profiles
    )


def _build_pair_scores(state: NodeStateChanged) -> dict[str, dict[str, int]]:
    scores: dict[str, dict[str, int]] = {}
    size = len(state.uuid)
    for pair, score in enumerate(state.pair_scores.tolist()):
        device, peer = divmod(pair, size)
        scores.setdefault(state.uuid[device], {})[state.uuid[peer]] = score
    return scores


def _fill_use(columns: ClusterColumns, entry: NodeEntry, state: NodeStateChanged) -> None:
    block = entry.rows_slice
    devices = columns.devices
    for name, used in zip(USED, (state.slots_used, state.cores_used_percent, state.memory_used_mib), strict=True):
        devices[name][block] = used
        columns.nodes[name][entry.id] = used.sum()
    devices["unsound"][block] = 0
    entry.classes.clear()
    for fields in state.vendor_fields:
        if fields.classes:
            entry.classes[entry.start + fields.device] = list(fields.classes)
    entry.held.clear()
    for use in state.mig:
        row = entry.start + use.device
        devices["unsound"][row] = use.unknown
        entry.held[row] = [Placement(span.start, span.size) for span in use.spans]

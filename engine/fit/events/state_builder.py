"""States of nodes' devices as events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
import orjson

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_entry import NodeEntry, RegisteredKind
from engine.fit.events.attempt import Identity
from engine.fit.events.record_columns import INT64_MAX, Ints, join_array
from schemas.codec.records import encode_value
from schemas.events import DeviceKind, MigInstanceProfile, MigSpan, MigUse, NodeStateChanged, VendorFields

_REGISTERED: Final = {"index": "index", "numa": "numa", "healthy": "is_healthy"}
_CHANGING: Final = {
    "cordoned": "is_cordoned",
    "memory_used_mib": "used_memory",
    "cores_used_percent": "used_cores",
    "slots_used": "used_slots",
}
"""Field of `NodeStateChanged` -> column of the device table."""


@dataclass(frozen=True, slots=True)
class Life:
    """Run of a scheduler. epoch: microseconds since 1970 of its start; revisions are counted within it."""

    identity: Identity
    epoch: int


class StateBuilder:
    """Builder of the events. What a registration says is encoded once, at the first state after it."""

    def __init__(self, life: Life, columns: ClusterColumns) -> None:
        self._life, self._columns = life, columns
        self._kinds: list[bytes] = []
        self._tables: dict[tuple[int, ...], orjson.Fragment] = {}
        self._registered: dict[int, tuple[NodeEntry, dict[str, Any]]] = {}

    def build_states(self, ids: Ints, observed_at: datetime) -> Iterator[NodeStateChanged]:
        """Build the state of each registered node; ids: of shape (n,)."""
        if not ids.size:
            return
        table, nodes = self._columns.devices, self._columns.nodes
        sizes = nodes["size"][ids]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(offsets[-1]) + np.repeat(nodes["start"][ids] - offsets[:-1], sizes)
        # As lists at once: slicing and writing eight numbers costs more as numpy arrays.
        columns = {field: table[name][rows].tolist() for field, name in _CHANGING.items()}
        unsound = table["unsound"][rows].tolist()
        revisions, ends = self._columns.revisions.get_revisions(ids).tolist(), offsets.tolist()
        without_devices = self.build_last_state("", 0, observed_at)
        for position, entry in enumerate(self._columns.get_entries(ids.tolist())):
            run = slice(ends[position], ends[position + 1])
            changing = {field: column[run] for field, column in columns.items()}
            changing |= {"revision": revisions[position], "mig": _list_mig_uses(entry, unsound[run])}
            if entry.peculiar_devices or entry.classes or entry.marks:
                changing |= {"vendor_fields": _list_vendor_fields(entry), "annotations": dict(entry.marks)}
            # A copy takes a third of the time of a new event.
            yield without_devices.model_copy(update=self._get_registered_fields(entry) | changing)

    def _get_registered_fields(self, entry: NodeEntry) -> dict[str, Any]:
        """Get the fields of the event that follow from the node's registration."""
        cached = self._registered.get(entry.id)
        if cached is None or cached[0] is not entry:
            cached = self._registered[entry.id] = entry, self._read_registered(entry)
        return cached[1]

    def _read_registered(self, entry: NodeEntry) -> dict[str, Any]:
        self._kinds += [encode_value(to_device_kind(kind)) for kind in self._columns.kinds[len(self._kinds) :]]
        table, block = self._columns.devices, entry.rows_slice
        codes = table["kind"][block].tolist()
        distinct = list(dict.fromkeys(codes))
        columns = {field: table[name][block].tolist() for field, name in _REGISTERED.items()} | {
            "kind": list(map(distinct.index, codes)),
            "pair_scores": _list_pair_scores(entry),
        }
        return {field: _encode_column(field, tuple(column)) for field, column in columns.items()} | {
            "node": entry.fragment.name,
            "kinds": self._join_kinds(tuple(distinct)),
            "uuid": orjson.Fragment(entry.fragment.uuids_json),
        }

    def _join_kinds(self, codes: tuple[int, ...]) -> orjson.Fragment:
        if codes not in self._tables:
            self._tables[codes] = join_array([self._kinds[code] for code in codes])
        return self._tables[codes]

    def build_last_state(self, node: str, revision: int, observed_at: datetime) -> NodeStateChanged:
        """Build the state of a node that offers no devices any more, or whose devices are left to another scheduler."""
        empty = ("kinds", "uuid", "kind", "mig", "pair_scores", "vendor_fields", *_REGISTERED, *_CHANGING)
        fields: dict[str, Any] = {field: [] for field in empty}
        return NodeStateChanged.model_construct(
            cluster=self._life.identity.cluster,
            node=node,
            observed_at=observed_at,
            scheduler=self._life.identity.scheduler,
            epoch=self._life.epoch,
            revision=revision,
            annotations={},
            withheld_cause=self._columns.get_withheld_cause(node),
            **fields,
        )


# Most nodes number their devices alike, so they share these texts.
@lru_cache(maxsize=1024)
def _encode_column(_field: str, column: tuple[int, ...]) -> orjson.Fragment:
    # By field: a tuple of 1 is equal to one of True, and their JSON is not.
    return orjson.Fragment(orjson.dumps(column))


def _list_pair_scores(entry: NodeEntry) -> list[int]:
    # A device alone has no pair.
    return entry.pairs.ravel().tolist() if entry.size > 1 and entry.pairs is not None else []


def _list_mig_uses(entry: NodeEntry, unsound: Sequence[int]) -> list[MigUse]:
    if not entry.held and not any(unsound):
        return []
    held = [entry.held.get(row, []) for row in entry.block]
    return [
        MigUse.model_construct(
            device=device,
            spans=[MigSpan.model_construct(start=span.start, size=span.size) for span in spans],
            unknown=unknown,
        )
        for device, (spans, unknown) in enumerate(zip(held, unsound, strict=True))
        if spans or unknown
    ]


def _list_vendor_fields(entry: NodeEntry) -> list[VendorFields]:
    registered = dict(entry.peculiar_devices)
    classes = {row - entry.start: words for row, words in entry.classes.items() if words}
    return [
        VendorFields.model_construct(
            device=device, registered=registered.get(device, {}), classes=list(classes.get(device, ()))
        )
        for device in sorted(registered.keys() | classes)
    ]


def to_device_kind(kind: RegisteredKind) -> DeviceKind:
    """Convert a kind of device to the contract's."""
    # A registration may hold any whole number; the contract's numbers have 64 bits.
    numbers = (min(max(number, -INT64_MAX), INT64_MAX) for number in (kind.memory_mib, kind.cores, kind.slots))
    memory, cores, slots = numbers
    return DeviceKind.model_construct(
        model=kind.model,
        vendor=kind.vendor,
        mode=kind.mode,
        memory_mib=memory,
        cores_percent=cores,
        slots=slots,
        mig_profiles=[
            MigInstanceProfile(
                name=profile.name,
                memory_mib=profile.memory_mib,
                cores_percent=profile.cores,
                slices=profile.slices,
                placements=[(placement.start, placement.size) for placement in profile.placements],
            )
            for profile in kind.mig_profiles
        ],
    )

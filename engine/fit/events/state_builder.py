"""The states of nodes' devices as events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
import orjson

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_entry import NodeEntry, RegisteredKind
from engine.fit.events.identity import Identity
from engine.fit.events.record_columns import INT64_MAX, Ints, json_array
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
    """One run of a scheduler. epoch: microseconds since 1970 of its start; revisions are counted within it."""

    by: Identity
    epoch: int


class StateBuilder:
    """Builds the events. What a registration says is encoded once, at the first state after it."""

    def __init__(self, life: Life, columns: ClusterColumns) -> None:
        self._life, self._columns = life, columns
        self._kinds: list[bytes] = []
        self._tables: dict[tuple[int, ...], orjson.Fragment] = {}
        self._registered: dict[int, tuple[NodeEntry, dict[str, Any]]] = {}

    def states(self, ids: Ints, observed_at: datetime) -> Iterator[NodeStateChanged]:
        """The state of each registered node; ids: of shape (n,)."""
        if not ids.size:
            return
        table, nodes = self._columns.devices, self._columns.nodes
        sizes = nodes["size"][ids]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(offsets[-1]) + np.repeat(nodes["start"][ids] - offsets[:-1], sizes)
        # As lists at once: slicing and writing eight numbers costs more as numpy arrays.
        columns = {field: table[name][rows].tolist() for field, name in _CHANGING.items()}
        unsound = table["unsound"][rows].tolist()
        revisions, ends = self._columns.revisions.of(ids).tolist(), offsets.tolist()
        without_devices = self.last_state("", 0, observed_at)
        for place, entry in enumerate(self._columns.entries(ids.tolist())):
            run = slice(ends[place], ends[place + 1])
            changing = {field: column[run] for field, column in columns.items()}
            changing |= {"revision": revisions[place], "mig": _mig_uses(entry, unsound[run])}
            if entry.peculiar_devices or entry.classes or entry.marks:
                changing |= {"vendor_fields": _vendor_fields(entry), "annotations": dict(entry.marks)}
            # A copy takes a third of the time of a new event.
            yield without_devices.model_copy(update=self._as_registered(entry) | changing)

    def _as_registered(self, entry: NodeEntry) -> dict[str, Any]:
        """The fields of the event that follow from the node's registration."""
        known = self._registered.get(entry.id)
        if known is None or known[0] is not entry:
            known = self._registered[entry.id] = entry, self._read(entry)
        return known[1]

    def _read(self, entry: NodeEntry) -> dict[str, Any]:
        self._kinds += [encode_value(device_kind(kind)) for kind in self._columns.kinds[len(self._kinds) :]]
        table, block = self._columns.devices, entry.rows_slice
        codes = table["kind"][block].tolist()
        distinct = list(dict.fromkeys(codes))
        columns = {field: table[name][block].tolist() for field, name in _REGISTERED.items()} | {
            "kind": list(map(distinct.index, codes)),
            "pair_scores": _pair_scores(entry),
        }
        return {field: _json_of(field, tuple(column)) for field, column in columns.items()} | {
            "node": entry.fragment.name,
            "kinds": self._kinds_of(tuple(distinct)),
            "uuid": orjson.Fragment(entry.fragment.uuids_json),
        }

    def _kinds_of(self, codes: tuple[int, ...]) -> orjson.Fragment:
        if codes not in self._tables:
            self._tables[codes] = json_array([self._kinds[code] for code in codes])
        return self._tables[codes]

    def last_state(self, node: str, revision: int, observed_at: datetime) -> NodeStateChanged:
        """The state of a node that offers no devices any more."""
        empty = ("kinds", "uuid", "kind", "mig", "pair_scores", "vendor_fields", *_REGISTERED, *_CHANGING)
        fields: dict[str, Any] = {field: [] for field in empty}
        return NodeStateChanged.model_construct(
            cluster=self._life.by.cluster,
            node=node,
            observed_at=observed_at,
            scheduler=self._life.by.scheduler,
            epoch=self._life.epoch,
            revision=revision,
            annotations={},
            **fields,
        )


# Most nodes number their devices alike, so they share these texts.
@lru_cache(maxsize=1024)
def _json_of(_field: str, column: tuple[int, ...]) -> orjson.Fragment:
    # By field: a tuple of 1 is equal to one of True, and their JSON is not.
    return orjson.Fragment(orjson.dumps(column))


def _pair_scores(entry: NodeEntry) -> list[int]:
    # A device alone has no pair.
    return entry.pairs.ravel().tolist() if entry.size > 1 and entry.pairs is not None else []


def _mig_uses(entry: NodeEntry, unsound: Sequence[int]) -> list[MigUse]:
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


def _vendor_fields(entry: NodeEntry) -> list[VendorFields]:
    registered = dict(entry.peculiar_devices)
    classes = {row - entry.start: words for row, words in entry.classes.items() if words}
    return [
        VendorFields.model_construct(
            device=device, registered=registered.get(device, {}), classes=list(classes.get(device, ()))
        )
        for device in sorted(registered.keys() | classes)
    ]


def device_kind(kind: RegisteredKind) -> DeviceKind:
    """A kind of device as the contract has it."""
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
                placements=[(place.start, place.size) for place in profile.placements],
            )
            for profile in kind.mig_profiles
        ],
    )

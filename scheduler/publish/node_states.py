"""The states of nodes' devices: in the spool before the first verdict that refers to them, and again once a day."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

import numpy as np
import orjson

from scheduler.devices.cluster_state import ClusterColumns
from scheduler.devices.node_entry import NodeEntry, RegisteredKind
from scheduler.metrics import Metrics
from scheduler.publish.record_columns import INT64_MAX, Ints, json_array
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import encode_value
from schemas.events import DeviceKind, MigInstanceProfile, MigSpan, MigUse, NodeStateChanged
from schemas.ids import microseconds

PAUSE_SECONDS: Final = 1.0
PERIOD_HOURS: Final = 20
"""Within so many hours every state is written at least once, a few at a time."""
LONGEST_AGE_HOURS: Final = 22
"""No verdict refers to a state that was written longer ago, also where the process was stopped or did not lead in the
meantime: a state is looked for on the attempt's day and on the day before."""
_NODES_PER_SLICE: Final = 200
"""States that the task writes before a filter call gets its turn: a few milliseconds."""
_HOUR: Final = 3_600_000_000

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

    scheduler: str
    epoch: int


class NodeStates:
    """Writes the states of the nodes of `columns`.

    problem: why this scheduler does not decide now; empty where it does.
    """

    def __init__(
        self,
        life: Life,
        columns: ClusterColumns,
        event_writer: SpoolWriter,
        clock: Callable[[], datetime],
        metrics: Metrics,
        problem: Callable[[], str] = lambda: "",
    ) -> None:
        self.life, self._columns, self._events, self._clock = life, columns, event_writer, clock
        self._metrics, self._problem = metrics, problem
        self._builder = StateBuilder(life, columns)
        self._looked_at = microseconds(clock())
        self._owed = 0.0

    def write_changed(self) -> None:
        """Write every state that is not written yet: what is decided now may refer to it."""
        now = self._clock()
        self._write(self._due(now), now)

    def write_again(self) -> None:
        """Write the states that were written longest ago, as many as the time since the last call asks for."""
        now = self._clock()
        at = microseconds(now)
        # By a rate and not by age: all states are first written within a second, and would all be due within one.
        elapsed = max(at - self._looked_at, 0) / (PERIOD_HOURS * _HOUR)
        nodes = len(self._columns.node_names)
        self._looked_at, self._owed = at, min(self._owed + nodes * elapsed, nodes)
        count = int(self._owed)
        self._owed -= count
        self._write(self._columns.revisions.oldest(count), now)

    async def run(self) -> None:
        """Write what no attempt has written, every second while this scheduler decides, until cancelled."""
        while True:
            if not self._problem():
                await self._write_in_slices()
                self.write_again()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _write_in_slices(self) -> None:
        while (due := self._due(now := self._clock())).size or self._columns.revisions.gone:
            self._write(due[:_NODES_PER_SLICE], now)
            await asyncio.sleep(0)

    def _due(self, now: datetime) -> Ints:
        return self._columns.revisions.due(microseconds(now) - LONGEST_AGE_HOURS * _HOUR)

    def _write(self, ids: Ints, now: datetime) -> None:
        revisions = self._columns.revisions
        if not ids.size and not revisions.gone:
            return
        # A node that is registered again has a state to be written, so it needs no last one.
        gone = [(name, last) for name, last in revisions.gone.items() if self._columns.entry(name) is None]
        last_states = (self._builder.last_state(name, last, now) for name, last in gone)
        self._events.write(chain(last_states, self._builder.states(ids, now)))
        revisions.gone.clear()
        revisions.written(ids, microseconds(now))
        self._metrics.node_states.inc(len(gone) + ids.size)


class StateBuilder:
    """Builds the events. What a registration says is encoded once, at the first state after it."""

    def __init__(self, life: Life, columns: ClusterColumns) -> None:
        self._life, self._columns = life, columns
        self._kinds: list[bytes] = []
        self._registered: dict[int, tuple[NodeEntry, NodeStateChanged]] = {}

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
        for place, entry in enumerate(self._columns.entries(ids.tolist())):
            run = slice(ends[place], ends[place + 1])
            changing = {field: column[run] for field, column in columns.items()}
            # A copy takes a third of the time of a new event.
            yield self._of_registration(entry, observed_at).model_copy(
                update=changing
                | {"observed_at": observed_at, "revision": revisions[place], "mig": _mig_uses(entry, unsound[run])}
            )

    def _of_registration(self, entry: NodeEntry, observed_at: datetime) -> NodeStateChanged:
        """A state with what the node registered; the rest has to be filled in."""
        known = self._registered.get(entry.id)
        if known is None or known[0] is not entry:
            known = self._registered[entry.id] = entry, self._read(entry, observed_at)
        return known[1]

    def _read(self, entry: NodeEntry, observed_at: datetime) -> NodeStateChanged:
        self._kinds += [encode_value(device_kind(kind)) for kind in self._columns.kinds[len(self._kinds) :]]
        table, block = self._columns.devices, entry.rows_slice
        codes = table["kind"][block].tolist()
        distinct = list(dict.fromkeys(codes))
        columns = {field: table[name][block].tolist() for field, name in _REGISTERED.items()} | {
            "kind": list(map(distinct.index, codes)),
            "pair_scores": _pair_scores(entry),
        }
        return self.last_state(entry.fragment.name, 0, observed_at).model_copy(
            update={field: orjson.Fragment(orjson.dumps(column)) for field, column in columns.items()}
            | {
                "kinds": json_array([self._kinds[code] for code in distinct]),
                "uuid": orjson.Fragment(entry.fragment.uuids_json),
            }
        )

    def last_state(self, node: str, revision: int, observed_at: datetime) -> NodeStateChanged:
        """The state of a node that offers no devices any more."""
        empty = ("kinds", "uuid", "kind", "mig", "pair_scores", *_REGISTERED, *_CHANGING)
        fields: dict[str, Any] = {field: [] for field in empty}
        return NodeStateChanged.model_construct(
            node=node,
            observed_at=observed_at,
            scheduler=self._life.scheduler,
            epoch=self._life.epoch,
            revision=revision,
            **fields,
        )


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

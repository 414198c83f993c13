"""States of nodes' devices, written before the first verdict that refers to them, and again once a day."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from itertools import chain
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.record_columns import Ints
from engine.fit.events.state_builder import Life, StateBuilder
from scheduler.metrics import Metrics
from scheduler.publish.spool_writer import SpoolWriter
from schemas.ids import count_microseconds

PAUSE_SECONDS: Final = 1.0
PERIOD_HOURS: Final = 20
"""Hours within which every state is written at least once, a few at a time."""
LONGEST_AGE_HOURS: Final = 22
"""Age of the oldest state that a verdict refers to, also where the process was stopped or did not lead in the
meantime: readers search for a state on the attempt's day and on the day before."""
QUIET_SECONDS: Final = 60
"""Time until the states are written again after a spool was full for the last time."""
_NODES_PER_SLICE: Final = 200
"""States that the task writes before a filter call gets its turn: a few milliseconds."""
_HOUR: Final = 3_600_000_000


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
        self._looked_at = count_microseconds(clock())
        self._owed = 0.0
        self._lost = self._lost_at = 0

    def write_changed(self) -> None:
        """Write every state that is not written yet: what is decided now may refer to it."""
        now = self._clock()
        self._write(self._list_due(now), now)

    def write_again(self) -> None:
        """Write the states that were written longest ago, as many as the time since the last call asks for."""
        now = self._clock()
        now_us = count_microseconds(now)
        # By a rate and not by age: all states are first written within a second, and would all be due within one.
        elapsed = max(now_us - self._looked_at, 0) / (PERIOD_HOURS * _HOUR)
        nodes = len(self._columns.node_names)
        self._looked_at, self._owed = now_us, min(self._owed + nodes * elapsed, nodes)
        count = int(self._owed)
        self._owed -= count
        self._write(self._columns.revisions.list_oldest(count), now)

    def write_lost(self) -> None:
        """Let all states be due again where a full spool may have lost some of them."""
        now_us, lost = count_microseconds(self._clock()), self._events.lost
        if lost != self._lost:
            self._lost, self._lost_at = lost, now_us
        # Not while records are still being lost: the states would take the place of decisions, and be lost too.
        elif self._lost_at and now_us - self._lost_at >= QUIET_SECONDS * 1_000_000:
            self._columns.revisions.expire()
            self._lost_at = 0

    async def run(self) -> None:
        """Write what no attempt has written, every second while this scheduler decides, until cancelled."""
        while True:
            if not self._problem():
                self.write_lost()
                await self._write_in_slices()
                self.write_again()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _write_in_slices(self) -> None:
        while (due := self._list_due(now := self._clock())).size or self._columns.revisions.unregistered:
            self._write(due[:_NODES_PER_SLICE], now)
            await asyncio.sleep(0)

    def _list_due(self, now: datetime) -> Ints:
        return self._columns.revisions.list_due(count_microseconds(now) - LONGEST_AGE_HOURS * _HOUR)

    def _write(self, ids: Ints, now: datetime) -> None:
        revisions = self._columns.revisions
        if not ids.size and not revisions.unregistered:
            return
        ended, again = self._split_ended(set(ids.tolist()))
        last_states = (self._builder.build_last_state(name, revisions.unregistered[name], now) for name in ended)
        self._events.write(chain(last_states, self._builder.build_states(ids, now)))
        for name in (*ended, *again):
            del revisions.unregistered[name]
        revisions.record_written(ids, count_microseconds(now))
        self._metrics.node_states.inc(len(ended) + ids.size)

    def _split_ended(self, ids: set[int]) -> tuple[list[str], list[str]]:
        """Split the unregistered nodes into those that get a last state now, and those that no longer need one, because
        they are registered again and their new state is written now."""
        entries = [(name, self._columns.get_entry(name)) for name in self._columns.revisions.unregistered]
        ended = [name for name, entry in entries if entry is None]
        return ended, [name for name, entry in entries if entry and entry.id in ids]

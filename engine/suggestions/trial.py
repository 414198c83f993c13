"""Hypothetical questions to the scheduler's own fit, on one cluster. Everything lifted for a question is restored after
it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np

from engine.fit.devices import node_columns
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Ints
from engine.fit.devices.node_columns import USED
from engine.fit.devices.pod_usage import PodUse
from engine.fit.devices.quota import Quotas
from engine.fit.judge.decide import decide_requests, list_constraints
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.judge.fitting_nodes import Left, PassingDevices, find_candidates, find_largest_left, fits_anywhere
from engine.fit.judge.request.pod_annotations import WeightsError
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.suggestions.ask import Ask, Constraint

Lifted = Sequence[Constraint]


class KeepsOut(NamedTuple):
    """Flag that excludes a device, whatever a pod requests: a column, its excluding value, and a word for it."""

    constraint: Literal["cordon", "health"]
    column: str
    value: bool
    word: str


FLAGS: Final = (
    KeepsOut("cordon", "is_cordoned", True, "cordoned"),
    KeepsOut("health", "is_healthy", False, "unhealthy"),
)


@dataclass(frozen=True)
class Trial:
    """Cluster for hypothetical questions. columns: its devices. offered: nodes that kube-scheduler offered. Every call
    comes from one thread."""

    columns: ClusterColumns
    offered: tuple[str, ...]
    policy: SchedulingPolicy
    # Not copied by ``replace``, which makes a trial of columns that may have changed.
    _changes: list[Constraint | None] = field(default_factory=list, init=False)
    """Present changes of the device columns: a lifted constraint, or None for a change of some devices."""
    _passing: dict[frozenset[Constraint | None], PassingDevices] = field(default_factory=dict, init=False)

    def decide(self, ask: Ask, lifted: Lifted = (), names: Sequence[str] | None = None) -> Decision | None:
        """Decide without the lifted constraints; None if no node fits.

        names: instead of all offered nodes, or of all nodes if ``nodes`` is lifted.
        """
        with self._without(lifted):
            return self._choose_node(
                ask, self._list_candidates(ask, self._select_names(lifted) if names is None else names)
            )

    def list_candidates(self, ask: Ask, lifted: Lifted = ()) -> list[str]:
        """List the nodes among which `decide` chooses, if any of them fits."""
        with self._without(lifted):
            return self._list_candidates(ask, self._select_names(lifted))

    def fits(self, ask: Ask, lifted: Lifted = (), names: Sequence[str] | None = None) -> bool:
        """Tell whether `decide` chooses a node, with less work."""
        with self._without(lifted):
            return self._fits(ask, self._select_names(lifted) if names is None else names)

    def find_max_left(self, ask: Ask, amount: Left, places: Collection[int]) -> int | None:
        """Find the amount above which the pod fits nowhere; None if it is not certain (`fitting_nodes`)."""
        constraints = self._read_constraints(ask)
        return (
            find_largest_left(
                constraints, ask.requests, self._get_ids(self.offered), amount, places, self._get_passing()
            )
            if constraints
            else None
        )

    def decide_without(self, ask: Ask, constraint: Constraint) -> Decision | None:
        """Decide with this constraint lifted; None also if it is not in force."""
        return self.decide(ask, [constraint]) if self.is_in_force(ask, constraint) else None

    def is_in_force(self, ask: Ask, constraint: Constraint) -> bool:
        """Tell whether lifting the constraint could change anything: constraints of the cluster may not, others always
        could."""
        devices = self.columns.devices
        if constraint == "nodes":
            return self._are_some_left_out
        if constraint == "quota":
            return bool(self.columns.quotas.limits.get(ask.namespace))
        flags = [(flag.column, flag.value) for flag in FLAGS if flag.constraint == constraint]
        return all(bool(((devices[name] == value) & (devices["vendor"] > 0)).any()) for name, value in flags)

    def _fits(self, ask: Ask, names: Sequence[str]) -> bool:
        constraints = self._read_constraints(ask)
        return bool(constraints) and fits_anywhere(constraints, ask.requests, self._get_ids(names), self._get_passing())

    def _get_passing(self) -> PassingDevices:
        """Return devices remembered for the columns as they are, and with some constraints lifted for all devices."""
        if None in self._changes:
            return PassingDevices(self.columns)
        return self._passing.setdefault(frozenset(self._changes), PassingDevices(self.columns))

    def _read_constraints(self, ask: Ask) -> dict[str, PodConstraints]:
        """Read the constraints by vendor; empty if the pod requests no device, or its annotations can't be read."""
        try:
            return dict(list_constraints(self.columns, ask.metadata, ask.requests, self.policy))
        except WeightsError:
            return {}

    def _get_ids(self, names: Sequence[str]) -> Ints:
        for common_names, ids in self._known_ids:
            if names is common_names:
                return ids
        return self.columns.look_up_ids(names)

    @cached_property
    def _known_ids(self) -> list[tuple[tuple[str, ...], Ints]]:
        """Node ids of the lists of names that are used most."""
        return [(names, self.columns.look_up_ids(names)) for names in (self.offered, self._registered)]

    @cached_property
    def _are_some_left_out(self) -> bool:
        return not frozenset(self._registered) <= frozenset(self.offered)

    @cached_property
    def _registered(self) -> tuple[str, ...]:
        return self.columns.node_names

    def _select_names(self, lifted: Lifted) -> Sequence[str]:
        return self._registered if "nodes" in lifted else self.offered

    def _choose_node(self, ask: Ask, names: Sequence[str]) -> Decision | None:
        if not names:
            return None
        decision = decide_requests(self.columns, ask.requests, ask.metadata, names, self.policy)
        return decision if isinstance(decision, Decision) and decision.chosen is not None else None

    def _list_candidates(self, ask: Ask, names: Sequence[str]) -> list[str]:
        constraints = self._read_constraints(ask)
        if not constraints:
            return []
        could = find_candidates(constraints, ask.requests, self._get_ids(names), self._get_passing())
        return [names[position] for position in np.flatnonzero(could).tolist()]

    @contextmanager
    def _without(self, lifted: Lifted) -> Iterator[None]:
        with ExitStack() as back:
            for constraint in lifted:
                back.enter_context(self._lifted(constraint))
            yield

    @contextmanager
    def without_pods(self, uses: Sequence[PodUse]) -> Iterator[None]:
        """Columns without these pods."""
        devices, nodes = self.columns.devices, self.columns.nodes
        changed = [(entry, use) for use in uses if (entry := self.columns.get_entry(use.node))]
        for entry, use in changed:
            node_columns.add_use(devices, nodes, entry, use, -1)
        self._changes.append(None)
        try:
            yield
        finally:
            self._changes.pop()
            for entry, use in changed:
                node_columns.add_use(devices, nodes, entry, use, 1)

    @contextmanager
    def with_flags(self, name: str, rows: Sequence[int], *, value: bool) -> Iterator[None]:
        """Columns in which the flag ``is_cordoned`` or ``is_healthy`` of these devices has this value."""
        column = self.columns.devices[name]
        before = column[list(rows)].copy()
        column[list(rows)] = value
        self._changes.append(None)
        try:
            yield
        finally:
            self._changes.pop()
            column[list(rows)] = before

    @contextmanager
    def with_quotas(self, quotas: Quotas) -> Iterator[None]:
        """Columns with these quotas."""
        before, self.columns.quotas = self.columns.quotas, quotas
        try:
            yield
        finally:
            self.columns.quotas = before

    @contextmanager
    def _lifted(self, constraint: Constraint) -> Iterator[None]:
        with ExitStack() as back:
            if constraint == "quota":
                back.enter_context(self.with_quotas(Quotas()))
            elif constraint == "cordon":
                back.enter_context(self._filled(constraint, ("is_cordoned",), value=False))
            elif constraint == "health":
                back.enter_context(self._filled(constraint, ("is_healthy",), value=True))
            elif constraint == "use":
                # MIG instances stay: the columns do not tell which of them would be given up.
                back.enter_context(self._filled(constraint, USED, value=0))
            yield

    @contextmanager
    def _filled(self, constraint: Constraint, names: Sequence[str], *, value: int) -> Iterator[None]:
        devices = self.columns.devices
        before = [devices[name].copy() for name in names]
        for name in names:
            np.copyto(devices[name], value, where=devices["vendor"] > 0)
        self._changes.append(constraint)
        try:
            yield
        finally:
            self._changes.pop()
            for name, column in zip(names, before, strict=True):
                devices[name][:] = column


def find_rows(columns: ClusterColumns, node: str, name: str, *, value: bool) -> list[int]:
    """Find the rows of the node's devices whose flag ``name`` has this value."""
    entry = columns.get_entry(node)
    if entry is None:
        return []
    rows: list[int] = (np.flatnonzero(columns.devices[name][entry.rows_slice] == value) + entry.start).tolist()
    return rows

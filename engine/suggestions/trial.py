"""Asks the scheduler's own fit what would be, on one cluster. What is lifted for a question comes back after it."""

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
from engine.fit.judge.decide import constraints_by_vendor, decide_requests
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.judge.fitting_nodes import Left, PassingDevices, could_fit, fits_anywhere, max_left
from engine.fit.judge.request.pod_annotations import WeightsError
from engine.fit.judge.request.pod_constraints import PodConstraints
from engine.suggestions.ask import Ask, Constraint

Lifted = Sequence[Constraint]


class KeepsOut(NamedTuple):
    """What keeps a device out, whatever a pod asks for: a column, its value where it does, and that in a word."""

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
    """columns: the cluster. offered: the nodes that kube-scheduler asked about. Every call comes from one thread."""

    columns: ClusterColumns
    offered: tuple[str, ...]
    policy: SchedulingPolicy
    _changes: list[Constraint | None] = field(default_factory=list)
    """What is different about the columns of the devices now: what is lifted, None for a change of some devices."""
    _passing: dict[frozenset[Constraint | None], PassingDevices] = field(default_factory=dict)

    def decide(self, ask: Ask, lifted: Lifted = (), names: Sequence[str] | None = None) -> Decision | None:
        """The decision that chooses a node, without the constraints that are lifted; None where no node fits.

        names: instead of all offered nodes, or of all nodes where ``nodes`` is lifted.
        """
        with self._without(lifted):
            return self._decision(ask, self._could(ask, self._names(lifted) if names is None else names))

    def could_fit(self, ask: Ask, lifted: Lifted = ()) -> list[str]:
        """The nodes among which `decide` chooses, where any of them fits."""
        with self._without(lifted):
            return self._could(ask, self._names(lifted))

    def fits(self, ask: Ask, lifted: Lifted = (), names: Sequence[str] | None = None) -> bool:
        """Whether `decide` chooses a node, found with less work."""
        with self._without(lifted):
            return self._fits(ask, self._names(lifted) if names is None else names)

    def max_left(self, ask: Ask, amount: Left, places: Collection[int]) -> int | None:
        """With more of the amount at these places it fits nowhere; None where that is not known (`fitting_nodes`)."""
        constraints = self._constraints(ask)
        return (
            max_left(constraints, ask.requests, self._ids(self.offered), amount, places, self._passing_now())
            if constraints
            else None
        )

    def decide_without(self, ask: Ask, constraint: Constraint) -> Decision | None:
        """As `decide` with this one lifted; None also where the constraint is not in force."""
        return self.decide(ask, [constraint]) if self.is_in_force(ask, constraint) else None

    def is_in_force(self, ask: Ask, constraint: Constraint) -> bool:
        """Whether lifting the constraint could change anything. For those of the cluster, others always could."""
        devices = self.columns.devices
        if constraint == "nodes":
            return self._are_some_left_out
        if constraint == "quota":
            return bool(self.columns.quotas.limits.get(ask.namespace))
        flags = [(flag.column, flag.value) for flag in FLAGS if flag.constraint == constraint]
        return all(bool(((devices[name] == value) & (devices["vendor"] > 0)).any()) for name, value in flags)

    def _fits(self, ask: Ask, names: Sequence[str]) -> bool:
        constraints = self._constraints(ask)
        return bool(constraints) and fits_anywhere(constraints, ask.requests, self._ids(names), self._passing_now())

    def _passing_now(self) -> PassingDevices:
        """Remembered for the columns as they are, and with some constraints lifted for all devices."""
        if None in self._changes:
            return PassingDevices(self.columns)
        return self._passing.setdefault(frozenset(self._changes), PassingDevices(self.columns))

    def _constraints(self, ask: Ask) -> dict[str, PodConstraints]:
        """By vendor; empty where the pod asks for no device, or its annotations can't be read."""
        try:
            return dict(constraints_by_vendor(self.columns, ask.metadata, ask.requests, self.policy))
        except WeightsError:
            return {}

    def _ids(self, names: Sequence[str]) -> Ints:
        for known, ids in self._known_ids:
            if names is known:
                return ids
        return self.columns.ids(names)

    @cached_property
    def _known_ids(self) -> list[tuple[tuple[str, ...], Ints]]:
        """The node ids of the lists of names that are asked about most."""
        return [(names, self.columns.ids(names)) for names in (self.offered, self._registered)]

    @cached_property
    def _are_some_left_out(self) -> bool:
        return not frozenset(self._registered) <= frozenset(self.offered)

    @cached_property
    def _registered(self) -> tuple[str, ...]:
        return self.columns.node_names

    def _names(self, lifted: Lifted) -> Sequence[str]:
        return self._registered if "nodes" in lifted else self.offered

    def _decision(self, ask: Ask, names: Sequence[str]) -> Decision | None:
        if not names:
            return None
        decision = decide_requests(self.columns, ask.requests, ask.metadata, names, self.policy)
        return decision if isinstance(decision, Decision) and decision.chosen is not None else None

    def _could(self, ask: Ask, names: Sequence[str]) -> list[str]:
        constraints = self._constraints(ask)
        if not constraints:
            return []
        could = could_fit(constraints, ask.requests, self._ids(names), self._passing_now())
        return [names[place] for place in np.flatnonzero(could).tolist()]

    @contextmanager
    def _without(self, lifted: Lifted) -> Iterator[None]:
        with ExitStack() as back:
            for constraint in lifted:
                back.enter_context(self._lifted(constraint))
            yield

    @contextmanager
    def without_pods(self, uses: Sequence[PodUse]) -> Iterator[None]:
        """As if these pods had ended."""
        devices, nodes = self.columns.devices, self.columns.nodes
        changed = [(entry, use) for use in uses if (entry := self.columns.entry(use.node))]
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
        """As if the flag ``is_cordoned`` or ``is_healthy`` of these devices were so."""
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
        """As if these were the quotas."""
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
                # Instances of MIG stay: which of them would be given up is not in the columns.
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


def rows_where(columns: ClusterColumns, node: str, name: str, *, value: bool) -> list[int]:
    """Rows of the node's devices whose flag ``name`` is so."""
    entry = columns.entry(node)
    if entry is None:
        return []
    found: list[int] = (np.flatnonzero(columns.devices[name][entry.rows_slice] == value) + entry.start).tolist()
    return found

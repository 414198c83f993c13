"""Asks the scheduler's own fit what would be, on one cluster. What is lifted for a question comes back after it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from diagnosis.suggestions.ask import Ask, Constraint
from fit.devices import node_columns
from fit.devices.cluster_state import ClusterColumns
from fit.devices.node_columns import USED
from fit.devices.pod_usage import PodUse
from fit.devices.quota import Quotas
from fit.judge.decide import decide_requests
from fit.judge.decision import Decision, SchedulingPolicy

Lifted = Sequence[Constraint]


@dataclass(frozen=True, slots=True)
class Trial:
    """columns: the cluster. offered: the nodes that kube-scheduler asked about. Every call comes from one thread."""

    columns: ClusterColumns
    offered: tuple[str, ...]
    policy: SchedulingPolicy

    def decide(self, ask: Ask, lifted: Lifted = (), names: Sequence[str] | None = None) -> Decision | None:
        """The decision that chooses a node, without the constraints that are lifted; None where no node fits.

        names: instead of all offered nodes, or of all nodes where ``nodes`` is lifted.
        """
        if names is None:
            names = self.columns.node_names if "nodes" in lifted else self.offered
        with ExitStack() as back:
            for constraint in lifted:
                back.enter_context(self._lifted(constraint))
            decision = decide_requests(self.columns, ask.requests, ask.metadata, names, self.policy)
        return decision if isinstance(decision, Decision) and decision.chosen is not None else None

    @contextmanager
    def without_pods(self, uses: Sequence[PodUse]) -> Iterator[None]:
        """As if these pods had ended."""
        devices, nodes = self.columns.devices, self.columns.nodes
        changed = [(entry, use) for use in uses if (entry := self.columns.entry(use.node))]
        for entry, use in changed:
            node_columns.add_use(devices, nodes, entry, use, -1)
        try:
            yield
        finally:
            for entry, use in changed:
                node_columns.add_use(devices, nodes, entry, use, 1)

    @contextmanager
    def with_flags(self, name: str, rows: Sequence[int], *, value: bool) -> Iterator[None]:
        """As if the flag ``is_cordoned`` or ``is_healthy`` of these devices were so."""
        column = self.columns.devices[name]
        before = column[list(rows)].copy()
        column[list(rows)] = value
        try:
            yield
        finally:
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
                back.enter_context(self._filled(("is_cordoned",), value=False))
            elif constraint == "health":
                back.enter_context(self._filled(("is_healthy",), value=True))
            elif constraint == "use":
                # Instances of MIG stay: which of them would be given up is not in the columns.
                back.enter_context(self._filled(USED, value=0))
            yield

    @contextmanager
    def _filled(self, names: Sequence[str], *, value: int) -> Iterator[None]:
        devices = self.columns.devices
        before = [devices[name].copy() for name in names]
        is_device = devices["vendor"] > 0
        for name in names:
            devices[name][is_device] = value
        try:
            yield
        finally:
            for name, column in zip(names, before, strict=True):
                devices[name][:] = column


def rows_where(columns: ClusterColumns, node: str, name: str, *, value: bool) -> list[int]:
    """Rows of the node's devices whose flag ``name`` is so."""
    entry = columns.entry(node)
    if entry is None:
        return []
    found: list[int] = (np.flatnonzero(columns.devices[name][entry.rows_slice] == value) + entry.start).tolist()
    return found

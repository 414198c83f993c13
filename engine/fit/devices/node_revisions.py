"""Revision of each node's state, and the revision that was written last: verdicts refer to a state by it. Pure."""

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.column_table import Table
from schemas.events import NO_STATE


class NodeRevisions:
    """Keeper of the columns `revision`, `published` and `written_at` of the node table.

    A change gives the state the next revision, and further changes keep it until it is written: no verdict refers to a
    revision before that. A revision is never used twice for one name, also where the node is registered again.

    unregistered: by node that is unregistered since its state was written, or withheld, the revision of its state
    without devices.
    """

    def __init__(self, nodes: Table) -> None:
        self._nodes = nodes
        self._highest_of_gone = 0
        self.unregistered: dict[str, int] = {}

    def begin(self, node_id: int) -> None:
        """Count from here on the changes of a node that registers."""
        # Above every revision of the nodes before it, so that no name has to be remembered for its revisions.
        self._nodes["published"][node_id] = self._highest_of_gone
        self.advance(node_id)

    def advance(self, node_id: int) -> None:
        self._nodes["revision"][node_id] = self._nodes["published"][node_id] + 1

    def end(self, node_id: int, name: str) -> None:
        """Forget a node that is unregistered; call it before its row is given back."""
        last = int(self._nodes["published"][node_id])
        if self._nodes["written_at"][node_id]:
            last = self.unregistered[name] = last + 1
        self._highest_of_gone = max(self._highest_of_gone, last)
        for column in ("revision", "published", "written_at"):
            self._nodes[column][node_id] = 0

    def mark_unregistered(self, name: str) -> None:
        """Let a state without devices be due for a node that is not registered, whether or not it had one before."""
        self._highest_of_gone += 1
        self.unregistered[name] = self._highest_of_gone

    def get_revisions(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Get the revision of each id, shape (n,); `NO_STATE` for -1."""
        return np.where(ids >= 0, self._nodes["revision"][ids], NO_STATE)

    def list_due(self, written_before: int) -> NDArray[np.int64]:
        """List the ids of nodes whose state is not written yet, or was last written before this time (microseconds)."""
        written_at = self._nodes["written_at"]
        is_overdue = (written_at > 0) & (written_at < written_before)
        return np.flatnonzero((self._nodes["revision"] != self._nodes["published"]) | is_overdue)

    def list_oldest(self, count: int) -> NDArray[np.int64]:
        """List the `count` nodes, by id, whose state was written longest ago."""
        written = np.flatnonzero(self._nodes["written_at"])
        order = np.argsort(self._nodes["written_at"][written], kind="stable")
        return written[order[:count]]

    def record_written(self, ids: NDArray[np.int64], written_at: int) -> None:
        """Note that the states of these nodes are written, at a time in microseconds."""
        self._nodes["published"][ids] = self._nodes["revision"][ids]
        self._nodes["written_at"][ids] = written_at

    def expire(self) -> None:
        """Let every state that was written be due again, under its revision."""
        written_at = self._nodes["written_at"]
        written_at[written_at > 0] = 1

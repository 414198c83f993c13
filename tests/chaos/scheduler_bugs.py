"""Bugs put on purpose into the scheduler, where it publishes the states of nodes."""

from collections.abc import Callable
from typing import Any, Final

from engine.fit.devices.node_revisions import NodeRevisions
from scheduler.publish.node_states import NodeStates


def _states_after_verdicts() -> None:
    """The task beside the filter calls writes every state within a second anyway."""

    def nothing(_states: NodeStates) -> None:
        """The filter call need not wait for it."""

    setattr(NodeStates, "write_changed", nothing)


def _two_states_of_one_revision() -> None:
    of = NodeRevisions.of

    def of_two_changes(revisions: NodeRevisions, ids: Any) -> Any:
        return of(revisions, ids) // 2

    setattr(NodeRevisions, "of", of_two_changes)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "a state published after its verdict": _states_after_verdicts,
    "a revision used twice": _two_states_of_one_revision,
}

"""Bugs put on purpose into the scheduler, where it publishes the states of nodes."""

from collections.abc import Callable
from typing import Any, Final

from engine.fit.devices.node_revisions import NodeRevisions
from scheduler.publish.node_states import NodeStates


def _publish_states_after_verdicts() -> None:
    """Write states only in the task next to the filter calls, within a second."""

    def skip_states(_states: NodeStates) -> None:
        """Return at once: the filter call need not wait for it."""

    setattr(NodeStates, "write_changed", skip_states)


def _give_two_states_one_revision() -> None:
    original = NodeRevisions.get_revisions

    def revise_two_changes(revisions: NodeRevisions, ids: Any) -> Any:
        return original(revisions, ids) // 2

    setattr(NodeRevisions, "get_revisions", revise_two_changes)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "a state published after its verdict": _publish_states_after_verdicts,
    "a revision used twice": _give_two_states_one_revision,
}

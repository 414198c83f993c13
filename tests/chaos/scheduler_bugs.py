"""Bugs put on purpose into the scheduler, where it writes the states of nodes."""

from collections.abc import Callable, Sequence
from typing import Final

from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.spool import Spool
from schemas.topics import NODE_STATES


def _states_after_verdicts() -> None:
    """Verdicts come first, because somebody waits for them."""
    append = Spool.append
    waiting: list[Entry] = []

    def late(spool: Spool, entries: Sequence[Entry]) -> None:
        waiting.extend(entry for entry in entries if entry.topic == NODE_STATES.name)
        verdicts = [entry for entry in entries if entry.topic != NODE_STATES.name]
        if verdicts:
            append(spool, [*verdicts, *waiting])
            waiting.clear()

    setattr(Spool, "append", late)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "a state published after its verdict": _states_after_verdicts,
}

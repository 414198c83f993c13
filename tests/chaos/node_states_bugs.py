"""Bugs put on purpose into the process that writes states into the index."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Final

from pipeline.node_states import state_writer
from pipeline.node_states.state_writer import StateWriter
from pipeline.sinks.bulk import Document
from schemas.events import NodeStateChanged
from schemas.indices import NODE_STATES


def _lost() -> None:
    document = StateWriter._document
    seen = count(1)

    async def losing(writer: StateWriter, record: Any) -> Document | None:
        made = await document(writer, record)
        return None if next(seen) % 3 == 0 else made

    setattr(StateWriter, "_document", losing)


def _expired() -> None:
    """Not written again for two days: the only document is in an index that retention deletes before the verdicts'."""
    document = state_writer.state_document

    def of_long_ago(event: NodeStateChanged, origin: Any) -> Document:
        return replace(document(event, origin), index=NODE_STATES.name(event.observed_at - timedelta(days=2)))

    setattr(state_writer, "state_document", of_long_ago)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "a state lost": _lost,
    "a state expired by retention": _expired,
}

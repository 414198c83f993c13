"""Node states by their ids, to which verdicts refer, as the bytes of their records. No I/O.

A state never changes under its id, so that no entry can be out of date.
"""

import time
from collections.abc import Iterable
from typing import Final

from api.memory.lru import Lru
from schemas.codec.records import decode_value
from schemas.events import NodeStateChanged

MAX_BYTES: Final = 32 * 1024**2
"""Size of the latest states of some 20,000 nodes with eight devices."""
_ENTRY_BYTES: Final = 500
"""Size of an entry without its record."""


class RecentStates:
    """States written or requested last, at most ``max_bytes`` in all."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._values: Lru[str, bytes] = Lru(max_bytes // _ENTRY_BYTES, max_bytes)

    def put(self, state: NodeStateChanged, value: bytes) -> None:
        """Store a state. ``value``: the JSON of its record."""
        self._values.put(state.id, value, len(value) + _ENTRY_BYTES, state.observed_at.timestamp())

    def find(self, ids: Iterable[str]) -> dict[str, NodeStateChanged]:
        """Find states by their ids; without the missing ones."""
        now = time.time()
        values = {name: self._values.get(name, now) for name in ids}
        decoded = {name: decode_value(NodeStateChanged, value) for name, value in values.items() if value is not None}
        return {name: state for name, state in decoded.items() if isinstance(state, NodeStateChanged)}

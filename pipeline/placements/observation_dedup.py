"""What was said last of one thing (a pod, a node's registration by one scheduler), and whether it is said again.

What stands in the index is all that has to be known: kept in memory or asked for again, the answer is the same.
"""

from bisect import insort
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from schemas.codec.records import encode_value
from schemas.documents.observations import Observed
from schemas.events import NodeRegistered

KEPT: Final = 8


class Known(NamedTuple):
    at: datetime
    id: str
    digest: str


def digest_of(event: Observed) -> str:
    """Equal for two that say the same; of a handshake counts only which step it is at, its time changes all along."""
    said = {name: value for name, value in event.__dict__.items() if name != "observed_at"}
    if isinstance(event, NodeRegistered):
        said["handshake"] = event.handshake.partition("_")[0].partition(" ")[0]
    return blake2b(encode_value(said), digest_size=16).hexdigest()


class Latest:
    """The latest sayings that said something new, by time."""

    def __init__(self) -> None:
        self._known: list[Known] = []

    def remember(self, known: Known) -> None:
        """It stands in the index, whatever stands beside it there."""
        if known not in self._known:
            insort(self._known, known)
            del self._known[:-KEPT]

    def add(self, said: Known) -> bool:
        """Is it something new against the one before it? Then it is kept."""
        if said in self._known:
            return False
        before = [each for each in self._known if each.at <= said.at]
        if before and before[-1].digest == said.digest:
            return False
        self.remember(said)
        return True

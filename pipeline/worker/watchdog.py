"""Does the worker still get on? Consumers have been seen to stop without a word; then it is better to end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Positions = Mapping[int, tuple[int, int]]
"""Per partition: the committed offset and the end of the log."""


def lag(positions: Positions) -> int:
    """Records that are there and not committed."""
    return sum(max(end - committed, 0) for committed, end in positions.values())


@dataclass(slots=True)
class Watchdog:
    """Watches the positions of one worker. Times are seconds of any clock that only goes forward."""

    stuck_after_seconds: float
    _committed: dict[int, int] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)

    def look(self, positions: Positions, now: float, *, is_excused: bool) -> str:
        """In words, what has stood still for too long; empty while all is well.

        A worker that waits for a store that is down is excused: ending it would not help.
        """
        for partition, (committed, end) in positions.items():
            moved = self._committed.get(partition) != committed
            if moved or is_excused or end <= committed:
                self._since[partition] = now
            self._committed[partition] = committed
        for partition in self._since.keys() - positions.keys():
            del self._since[partition]
            del self._committed[partition]
        late = [each for each, since in self._since.items() if now - since > self.stuck_after_seconds]
        return "; ".join(self._about(each, positions[each], now) for each in sorted(late))

    def _about(self, partition: int, position: tuple[int, int], now: float) -> str:
        committed, end = position
        return (
            f"partition {partition}: {end - committed} records to read, "
            f"committed offset {committed} for {now - self._since[partition]:.0f} s"
        )

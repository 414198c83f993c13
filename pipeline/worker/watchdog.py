"""Whether the worker makes progress: does the committed offset move while there are records to read?

Kafka consumers have been seen to stop without an error (faust-streaming issues 175, 523, 532 and 629). A process that
ends is started again and reads from the committed offset; one that hangs is not noticed by anything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Positions = Mapping[int, tuple[int, int]]
"""By partition: the committed offset and the end of the log."""


def lag(positions: Positions) -> int:
    """Records in the log that are not committed yet."""
    return sum(max(end - committed, 0) for committed, end in positions.values())


@dataclass(slots=True)
class Watchdog:
    """Compares the positions of one worker over time. Times are seconds of a monotonic clock."""

    stuck_after_seconds: float
    _committed: dict[int, int] = field(default_factory=dict)
    _moved_at: dict[int, float] = field(default_factory=dict)

    def check(self, positions: Positions, now: float, *, is_excused: bool) -> str:
        """Which partitions have been stuck for too long, in words; empty while all make progress.

        A worker that waits for a broker that is down is excused: restarting it would not help.
        """
        for partition, (committed, end) in positions.items():
            # Not equal instead of greater: an operator may reset the group to an earlier offset.
            has_moved = self._committed.get(partition) != committed
            # Nothing to read counts as progress too: an idle topic is no reason for a restart.
            if has_moved or is_excused or end <= committed:
                self._moved_at[partition] = now
            self._committed[partition] = committed
        # Partitions of other workers: when one comes back, its time begins again.
        for partition in self._moved_at.keys() - positions.keys():
            del self._moved_at[partition]
            del self._committed[partition]
        stuck = [partition for partition, since in self._moved_at.items() if now - since > self.stuck_after_seconds]
        return "; ".join(self._description(partition, positions[partition], now) for partition in sorted(stuck))

    def _description(self, partition: int, position: tuple[int, int], now: float) -> str:
        committed, end = position
        return (
            f"partition {partition}: {end - committed} records to read, "
            f"committed offset {committed} for {now - self._moved_at[partition]:.0f} s"
        )

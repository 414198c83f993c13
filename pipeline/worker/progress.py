"""Progress of the worker: records left to read, whether the broker answers, and whether the committed offset moves.

Kafka consumers have been seen to stop without an error (faust-streaming issues 175, 523, 532 and 629). A process that
ends is started again and reads from the committed offset; nothing else notices one that hangs.

The worker asks the broker for the ends of the partitions, because aiokafka's consumer gives no records and no error
while the broker does not answer. A worker that has nothing to publish would call itself ready then, and the watchdog
would end it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pipeline.worker import faust_app
from runtime.kafka.consumer import Connection

GROUP_SECONDS: Final = 10.0
"""Seconds between two questions about all partitions."""
Positions = Mapping[int, tuple[int, int]]
"""The committed offset and the end of the log, by partition."""


def count_lag(positions: Positions) -> int:
    """Count the records in the log that are not committed yet."""
    return sum(max(end - committed, 0) for committed, end in positions.values())


@dataclass(slots=True)
class Watchdog:
    """Compares the positions of one worker over time. Times are seconds of a monotonic clock."""

    stuck_after_seconds: float
    _committed: dict[int, int] = field(default_factory=dict)
    _moved_at: dict[int, float] = field(default_factory=dict)

    def check(self, positions: Positions, now: float, *, is_excused: bool) -> str:
        """Name the partitions that have been stuck for too long, in words; empty while all make progress.

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
        return "; ".join(self._describe(partition, positions[partition], now) for partition in sorted(stuck))

    def _describe(self, partition: int, position: tuple[int, int], now: float) -> str:
        committed, end = position
        return (
            f"partition {partition}: {end - committed} records to read, "
            f"committed offset {committed} for {now - self._moved_at[partition]:.0f} s"
        )


class StuckError(Exception):
    """The worker makes no progress for an unknown reason. End the process: its supervisor starts it again."""


class WorkerProgress:
    """Progress of one worker. ``waiting`` waits while the broker does not answer."""

    def __init__(self, stuck_after_seconds: float) -> None:
        self._connection = Connection()
        self.waiting = self._connection.backoff
        self.lag = 0
        self.group_lag = 0
        """Records of all partitions, also of those that no worker reads, as of the latest question."""
        self._group_asked_at = -GROUP_SECONDS
        self._watchdog = Watchdog(stuck_after_seconds)
        self._positions: Positions = {}

    async def check(self, app: faust_app.App | None, *, is_excused: bool) -> None:
        """Ask the broker once for this app; None where no app reads. Raises ``StuckError``.

        ``is_excused``: the worker waits for the broker elsewhere.
        """
        if app is None:
            # Not read for as long as a rebalance takes: its time begins again when it is.
            self._positions = {}
        elif (positions := await self._connection.ask(faust_app.fetch_positions(app))) is not None:
            self._positions = positions
            self.lag = count_lag(positions)
            await self._ask_about_group(app)
        is_excused = is_excused or self.waiting.is_waiting
        if stuck := self._watchdog.check(self._positions, time.monotonic(), is_excused=is_excused):
            # Not a new app: why the consumer stopped is not known, so nothing of it is used again.
            raise StuckError(f"no progress: {stuck}. Nothing is lost; the worker ends, to be started again.")

    async def _ask_about_group(self, app: faust_app.App) -> None:
        if time.monotonic() - self._group_asked_at < GROUP_SECONDS:
            return
        if (positions := await self._connection.ask(faust_app.fetch_group_positions(app))) is not None:
            self._group_asked_at, self.group_lag = time.monotonic(), count_lag(positions)

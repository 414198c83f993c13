"""How far the worker has come: how much there is to read, whether the broker answers, and whether anything moves.

The broker is asked for the ends of the partitions, because aiokafka's consumer gives no records and no error while it
does not answer. A worker that has nothing to publish then would call itself ready, and be ended by the watchdog.
"""

import time

from pipeline.worker import faust_app
from pipeline.worker.watchdog import Positions, Watchdog, lag
from runtime.kafka.consumer import Connection


class StuckError(Exception):
    """The worker makes no progress for an unknown reason. End the process: its supervisor starts it again."""


class WorkerProgress:
    """What is known of a worker's progress. ``waiting`` waits while the broker does not answer."""

    def __init__(self, stuck_after_seconds: float) -> None:
        self._connection = Connection()
        self.waiting = self._connection.backoff
        self.lag = 0
        self._watchdog = Watchdog(stuck_after_seconds)
        self._positions: Positions = {}

    async def check(self, app: faust_app.App | None, *, is_excused: bool) -> None:
        """Ask the broker once for this app; None where no app reads. Raises ``StuckError``.

        ``is_excused``: the worker waits for the broker elsewhere.
        """
        if app is None:
            # Not read for as long as a rebalance takes: its time begins again when it is.
            self._positions = {}
        elif (positions := await self._connection.ask(faust_app.positions(app))) is not None:
            self._positions = positions
            self.lag = lag(positions)
        is_excused = is_excused or self.waiting.is_waiting
        if stuck := self._watchdog.check(self._positions, time.monotonic(), is_excused=is_excused):
            # Not a new app: why the consumer stopped is not known, so nothing of it is used again.
            raise StuckError(f"no progress: {stuck}. Nothing is lost; the worker ends, to be started again.")

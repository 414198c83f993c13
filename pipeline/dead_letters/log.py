"""The lines in the log about records that become dead letters. Who can produce must not fill the log of a worker."""

import time
from collections.abc import Callable
from logging import Logger
from typing import Final

from pipeline.dead_letter import Source
from runtime.kafka.record import about_record

LINES: Final = 10
PERIOD_SECONDS: Final = 60.0


class DeadLetterLog:
    """Warnings of ``logger``, at most ``LINES`` in ``PERIOD_SECONDS``; the first line after them has the number of
    those that were left out. ``clock`` gives seconds and never goes back."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger, self._clock = logger, clock
        self._began_at = -PERIOD_SECONDS
        self._records = 0
        """Since then."""

    def note(self, source: Source, cause: str) -> None:
        """Warn which record is dead-lettered, and why."""
        self._begin_period()
        self._records += 1
        if self._records > LINES:
            return
        self._logger.warning(
            "dead-lettered %s[%d]@%d: %.500s", source.topic, source.partition, source.offset, cause,
            extra=about_record(source.headers),
        )  # fmt: skip
        if self._records == LINES:
            self._logger.warning("more dead letters within this minute are counted and not logged")

    def _begin_period(self) -> None:
        now = self._clock()
        if now - self._began_at < PERIOD_SECONDS:
            return
        if self._records > LINES:
            self._logger.warning("%d more records were dead-lettered and not logged", self._records - LINES)
        self._began_at, self._records = now, 0

"""The log of a process, configured once by its command: its own lines in full, those of libraries less often."""

import logging
import time
from collections.abc import Iterable
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
QUIET_SECONDS: Final = 30.0
LIBRARIES: Final = ("aiokafka", "faust", "mode", "kafka", "httpx", "kubernetes")


def configure(level: int = logging.INFO, *, quiet: Iterable[str] = (), silent: Iterable[str] = ()) -> None:
    """Log to stderr. ``quiet`` loggers warn at most, as those of the libraries; ``silent`` ones say nothing, because
    the process itself says once what they would repeat."""
    logging.basicConfig(level=level, format=FORMAT)
    for handler in logging.getLogger().handlers:
        # At the handler: filters of a logger do not see the records of the loggers below it.
        handler.addFilter(RarelyRepeated())
    for name in (*LIBRARIES, *quiet):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in silent:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class RarelyRepeated(logging.Filter):
    """Passes each complaint of a library once per ``QUIET_SECONDS``: a broker that is away makes ten a second."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in LIBRARIES:
            return True
        # The format before its arguments are put in: lines that differ only in a broker or a number count as one.
        key = record.name, str(record.msg)[:200]
        now = time.monotonic()
        if now - self._passed_at.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._passed_at[key] = now
        return True

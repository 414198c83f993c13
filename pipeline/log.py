"""What the worker says: its own words in full, those of the libraries below it sparingly."""

import logging
import time
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
QUIET_SECONDS: Final = 30.0
_LIBRARIES: Final = ("aiokafka", "faust", "mode", "kafka")
_FAUST_IN_OURS: Final = "pipeline.worker.faust_app"
"""Faust logs what a subclass of its services does under the module of the subclass."""


def configure(level: int = logging.INFO) -> None:
    logging.basicConfig(level=level, format=FORMAT)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Sparingly())
    for name in (*_LIBRARIES, _FAUST_IN_OURS):
        logging.getLogger(name).setLevel(logging.WARNING)


class Sparingly(logging.Filter):
    """Every complaint of a library once per ``QUIET_SECONDS``: a broker that is away makes ten a second."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in _LIBRARIES:
            return True
        key = record.name, str(record.msg)[:200]
        now = time.monotonic()
        if now - self._said.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._said[key] = now
        return True

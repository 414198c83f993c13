"""OpenSearch that does not answer half of the time, whatever else happens."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.chaos.faults import FAULTS
from tests.chaos.ground import Ground

SECONDS: Final = (4.0, 12.0)
"""Range of the seconds that OpenSearch stands still, and that it answers in between."""
_WITH_THE_INDEX: Final = ("OpenSearch", "indices", "frozen", "brokers")
WITHOUT_THE_INDEX: Final = tuple(name for name in FAULTS if not any(word in name for word in _WITH_THE_INDEX))
"""The faults that neither stop OpenSearch themselves nor wait for it."""


@contextmanager
def half_of_the_time(ground: Ground, chance: random.Random) -> Iterator[None]:
    """OpenSearch stands still (SIGSTOP) and answers in turn within this context; behind it, it answers."""
    server = ground.servers.opensearch
    if server.process is None:
        raise AssertionError("OpenSearch does not run")
    over, pid = threading.Event(), server.process.pid

    def take_turns() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(chance.uniform(*SECONDS))
            os.kill(pid, signal.SIGCONT)
            over.wait(chance.uniform(*SECONDS))

    thread = threading.Thread(target=take_turns, name="index outages")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

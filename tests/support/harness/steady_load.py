"""A steady load: one step after another in a thread of its own, while a test changes what the steps depend on."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.waiting import eventually

MAX_STEPS: Final = 3_000
"""A test that hangs must not fill its servers."""


class SteadyLoad:
    """Counter of the steps that have succeeded, and the first error."""

    def __init__(self) -> None:
        self.steps = 0
        self.error: Exception | None = None

    def wait_for_steps(self, count: int) -> None:
        """Return when so many more steps have succeeded."""
        wanted = self.steps + count
        eventually(lambda: self.error or self.steps >= wanted)
        if self.error:
            raise self.error


@contextmanager
def steady_load(step: Callable[[int], None], per_second: float) -> Iterator[SteadyLoad]:
    """Call ``step`` with 0, 1, 2, … at this rate until the context ends. Raises the error of a step at the end."""
    load, is_over = SteadyLoad(), threading.Event()

    def run() -> None:
        began = time.monotonic()
        try:
            while load.steps < MAX_STEPS and not is_over.wait(began + load.steps / per_second - time.monotonic()):
                step(load.steps)
                load.steps += 1
        except Exception as error:  # noqa: BLE001 - of any kind: the test raises it
            load.error = error

    thread = threading.Thread(target=run, name="steady load")
    thread.start()
    try:
        yield load
    finally:
        is_over.set()
        thread.join()
    if load.error:
        raise load.error

"""How long one caller waits for OpenSearch: over all the reads that one answer needs, not for each of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class CallerWait:
    """Begins with the first read. ``clock``: seconds that never go back."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._until: float | None = None

    def until(self) -> float:
        """When the caller has waited long enough, by the clock."""
        if self._until is None:
            self._until = self._clock() + self._seconds
        return self._until

    def remaining(self) -> float:
        """Seconds; 0 or less when the caller has waited long enough."""
        return self.until() - self._clock()


_CURRENT: Final[ContextVar[CallerWait | None]] = ContextVar("caller_wait", default=None)


def current_wait() -> CallerWait | None:
    """That of the caller who is being answered; None outside of ``bounded_wait``."""
    return _CURRENT.get()


@contextmanager
def bounded_wait(seconds: float) -> Iterator[None]:
    """Reads inside, in tasks begun inside too, take so long together."""
    token = _CURRENT.set(CallerWait(seconds))
    try:
        yield
    finally:
        _CURRENT.reset(token)

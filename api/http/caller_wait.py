"""Time limit of one caller's wait for OpenSearch, over all the reads that one answer needs."""

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Final


class CallerWait:
    """Time that the reads of one answer may take together, counted from the first read.

    ``clock`` returns seconds that never go back. As a context manager it bounds the reads inside, also those of tasks
    that start inside.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._until: float | None = None
        self._before: Token[CallerWait | None] | None = None

    def __enter__(self) -> None:
        self._before = _CURRENT.set(self)

    def __exit__(self, *_: object) -> None:
        if self._before:
            _CURRENT.reset(self._before)

    def derive_end(self) -> float:
        """Return the clock's time at which the caller has waited long enough; the first call starts the wait."""
        if self._until is None:
            self._until = self._clock() + self._seconds
        return self._until

    def count_remaining_seconds(self) -> float:
        """Return the remaining seconds; 0 or less when the caller has waited long enough."""
        return self.derive_end() - self._clock()


_CURRENT: Final[ContextVar[CallerWait | None]] = ContextVar("caller_wait", default=None)


def get_current_wait() -> CallerWait | None:
    """Return the current request's ``CallerWait``, or None outside of one."""
    return _CURRENT.get()

"""How long one caller waits for OpenSearch: over all the reads that one answer needs, not for each of them."""

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Final


class CallerWait:
    """Begins with the first read. ``clock``: seconds that never go back.

    As a context manager: reads inside, in tasks begun inside too, take so long together.
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
    """That of the caller who is being answered; None outside of every ``CallerWait``."""
    return _CURRENT.get()

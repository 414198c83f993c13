"""A circuit breaker: while OpenSearch hangs, callers are refused at once and do not wait for another time-out each."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

TIMEOUTS: Final = 3
"""So many requests in a row without an answer in time open the circuit."""
OPEN_SECONDS: Final = 1.0
"""While it is open, one request in so many seconds is let through."""


class CircuitOpenError(Exception):
    """The request was not sent."""


class Circuit:
    """Closed at first; the first answer closes it again. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._timeouts = 0
        self._refuses_until = 0.0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around one request: ``TimeoutError`` counts towards opening, any other end but a cancellation closes.

        Raises ``CircuitOpenError``.
        """
        if self._timeouts >= TIMEOUTS:
            # Not one after the other: a request that takes long by itself would keep the others from trying.
            if self._clock() < self._refuses_until:
                raise CircuitOpenError
            self._refuses_until = self._clock() + OPEN_SECONDS
        try:
            yield
        except TimeoutError:
            self._timeouts += 1
            if self._timeouts == TIMEOUTS:
                self._refuses_until = self._clock() + OPEN_SECONDS
            raise
        except Exception:
            # Whatever the answer was, it came. A cancelled caller (no Exception) says nothing about OpenSearch.
            self._timeouts = 0
            raise
        else:
            self._timeouts = 0

"""Circuit breaker: while OpenSearch hangs, callers get an error at once and do not each wait for another time-out."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

TIMEOUTS: Final = 3
"""Number of time-outs in a row that open the circuit."""
OPEN_SECONDS: Final = 1.0
"""Interval in which an open circuit lets one request through."""


class CircuitOpenError(Exception):
    """Refusal of a request without sending it."""


class Circuit:
    """Circuit that is closed at first, and closed again by the first answer. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._timeouts = 0
        self._refuses_until = 0.0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Run one request inside: a ``TimeoutError`` counts, any other end except a cancellation closes the circuit.

        Raises ``CircuitOpenError``.
        """
        if self._timeouts >= TIMEOUTS:
            # By time, not one after the other: a slow request would keep the others from trying.
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
            # Any answer shows that OpenSearch does not hang. A cancelled caller (no Exception) shows nothing.
            self._timeouts = 0
            raise
        else:
            self._timeouts = 0

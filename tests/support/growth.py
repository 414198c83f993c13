"""Growth of a reader's time: with its input, or with the square of it."""

import time
from collections.abc import Callable
from typing import Final

FACTOR: Final = 8
_TRIES: Final = 20
_UNSURE_SECONDS: Final = 0.02


def measure_seconds(read: Callable[[int], object], size: int) -> float:
    """Measure CPU seconds."""
    began = time.process_time()
    read(size)
    return time.process_time() - began


def is_linear(read: Callable[[int], object], size: int) -> bool:
    """Tell whether eight times the input takes eight times as long, not sixty-four."""
    # Other work makes some measurements longer, and what grows with the square is too long in all of them.
    return any(_is_soon(read, size) for _ in range(_TRIES))


def _is_soon(read: Callable[[int], object], size: int) -> bool:
    # The few milliseconds that any measurement may be wrong by do not count: most need no other to compare with.
    if (longer := measure_seconds(read, FACTOR * size)) < _UNSURE_SECONDS:
        return True
    shorter = min(measure_seconds(read, size) for _ in range(3))
    return longer < 3 * FACTOR * shorter + _UNSURE_SECONDS

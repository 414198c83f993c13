"""Does the time of a reader grow with its input, or with the square of it?"""

import time
from collections.abc import Callable
from typing import Final

FACTOR: Final = 8
_TRIES: Final = 10


def seconds(read: Callable[[int], object], size: int) -> float:
    """CPU, the least of a few: others use the machine too."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        read(size)
        taken.append(time.process_time() - began)
    return min(taken)


def is_linear(read: Callable[[int], object], size: int) -> bool:
    """Of eight times the input it takes eight times as long, not sixty-four."""
    # The few milliseconds that any measurement may be wrong by do not count. Other work makes some measurements longer,
    # and what grows with the square is too long in all of them.
    return any(seconds(read, FACTOR * size) < 3 * FACTOR * seconds(read, size) + 0.02 for _ in range(_TRIES))

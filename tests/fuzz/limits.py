"""What a reader may take, whatever it is fed: time for each block of pieces, and memory behind it."""

import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

BLOCK: Final = 500
"""Pieces."""
SLOWEST_SECONDS: Final = 5.0
"""Of CPU, for a block. One piece of 64 KiB whose time grows with its square takes longer."""
MEMORY_BYTES: Final = 64 * 1024**2
"""More than a reader full of attempts holds."""


class BrokenPromiseError(AssertionError):
    """A reader emitted an event that can't be read, or took too much time or memory."""


@dataclass(slots=True)
class Usage:
    """Of one suite so far."""

    slowest_seconds: float = 0.0
    """Of CPU, for a block."""
    held_bytes: int = 0
    """Held behind a block; what making the pieces needs included."""

    def __str__(self) -> str:
        return f"{self.held_bytes / 1024**2:.1f} MiB held at most, {BLOCK} pieces within {self.slowest_seconds:.2f} s"


def guarded(outcomes: Iterator[str], usage: Usage) -> Iterator[str]:
    """The same outcomes. Raises ``BrokenPromiseError`` where a block took too long, or too much is held behind it."""
    tracemalloc.start()
    try:
        begun = time.process_time()
        while block := list(islice(outcomes, BLOCK)):
            usage.slowest_seconds = max(usage.slowest_seconds, time.process_time() - begun)
            usage.held_bytes = max(usage.held_bytes, tracemalloc.get_traced_memory()[0])
            if usage.slowest_seconds > SLOWEST_SECONDS or usage.held_bytes > MEMORY_BYTES:
                raise BrokenPromiseError(str(usage))
            yield from block
            begun = time.process_time()
    finally:
        tracemalloc.stop()

"""Limits of a reader, whatever it is fed: the time for each block of pieces, and by how much it may grow."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from dev.bench.cpu import read_resident_mib

BLOCK: Final = 500
"""Pieces."""
LARGE_PIECES: Final = {"simulations": 50, "pasted-objects": 50}
"""Pieces of a block by suite, where each one is more than a line: simulations with suggestions, and diagnoses."""
SLOWEST_SECONDS: Final = 5.0
"""CPU time of a block. One piece of 64 KiB whose time grows with its square takes longer."""
MEMORY_MIB: Final = 64
"""More than a reader full of attempts holds."""


class BrokenPromiseError(AssertionError):
    """A reader emitted an event that can't be read, or took too much time or memory."""


@dataclass(slots=True)
class Usage:
    """Time and memory of one suite so far."""

    slowest_seconds: float = 0.0
    """CPU time of a block."""
    grown_mib: float = 0.0
    """By how much the process has grown behind a block; what making the pieces needs, and modules, included."""
    block: int = BLOCK
    """Pieces of a block."""

    def __str__(self) -> str:
        return f"{self.grown_mib:.1f} MiB grown at most, {self.block} pieces within {self.slowest_seconds:.2f} s"


def guard(outcomes: Iterator[str], usage: Usage) -> Iterator[str]:
    """Yield the outcomes. Raises ``BrokenPromiseError`` if a block takes too long, or too much is held after it."""
    # Not traced: that takes two thirds of the time, and does not see what is allocated outside of Python.
    before = read_resident_mib(os.getpid())
    begun = time.process_time()
    while block := list(islice(outcomes, usage.block)):
        usage.slowest_seconds = max(usage.slowest_seconds, time.process_time() - begun)
        usage.grown_mib = max(usage.grown_mib, read_resident_mib(os.getpid()) - before)
        if usage.slowest_seconds > SLOWEST_SECONDS or usage.grown_mib > MEMORY_MIB:
            raise BrokenPromiseError(str(usage))
        yield from block
        begun = time.process_time()

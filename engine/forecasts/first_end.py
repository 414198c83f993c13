"""The time until the first of several pods ends, from the lengths of earlier holds. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

MIN_HOLDS: Final = 10
_SHARES: Final = (0.1, 0.9)
_STEPS: Final = 60
"""Halvings: the error is below a microsecond for a hold of years."""


class Remaining(NamedTuple):
    """Seconds of which a tenth of the ends comes earlier, and a tenth later."""

    earliest: float
    latest: float


def list_remaining(lengths: Sequence[float], running_for: float) -> list[float]:
    """List the seconds that remained of earlier holds when they had lasted as long as this one; sorted.

    Those that ended before are left out, as they say nothing about a hold that lasts longer.
    """
    return sorted(length - running_for for length in lengths if length >= running_for)


def find_first_end(samples: Sequence[Sequence[float]]) -> Remaining:
    """Find the interval of the first end. samples: for each pod, the sorted remaining seconds, at least ``MIN_HOLDS``.

    A further hold is as likely to end between any two neighbours of its sample (quantiles of n + 1 parts), and pods
    end independently of each other.
    """
    curves = [(np.array([0.0, *sample]), np.arange(len(sample) + 1) / (len(sample) + 1)) for sample in samples]
    limit = min(sample[-1] for sample in samples)

    def count_ended(seconds: float) -> float:
        return float(1 - np.prod([1 - np.interp(seconds, *curve) for curve in curves]))

    def find_quantile(share: float) -> float:
        low, high = 0.0, limit
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if count_ended(middle) >= share else (middle, high)
        return high

    return Remaining(*map(find_quantile, _SHARES))

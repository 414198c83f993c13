"""The time until the first of several pods ends, from the lengths of earlier holds. Pure."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

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
    curves = [[0.0, *sample] for sample in samples]
    limit = min(sample[-1] for sample in samples)

    def count_ended(seconds: float) -> float:
        return 1 - math.prod(1 - _interpolate_share(curve, seconds) for curve in curves)

    def find_quantile(share: float) -> float:
        low, high = 0.0, limit
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if count_ended(middle) >= share else (middle, high)
        return high

    return Remaining(*map(find_quantile, _SHARES))


def _interpolate_share(curve: Sequence[float], seconds: float) -> float:
    """Interpolate the share that has ended after ``seconds``. curve: 0 and the sorted seconds at which holds end."""
    number = bisect_right(curve, seconds)
    if number == len(curve):
        return (number - 1) / number
    before, after = curve[number - 1 : number + 1]
    return (number - 1 + (seconds - before) / (after - before)) / len(curve)

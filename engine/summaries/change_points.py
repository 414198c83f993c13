"""Where the level of a series of counts changes: pure.

Counts of events vary by themselves, as Poisson's do or more, because schedulers try a pod in bursts. A change is marked
where two levels explain the series so much better than one that it is no chance (a likelihood ratio, over the variance
of the series), and then looked for again on both sides of it (binary segmentation).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_BUCKETS: Final = 4
"""On each side of a change: of fewer, nobody can say what their level is."""
THRESHOLD: Final = 30.0
"""For the statistic, which is chi squared with one degree of freedom: chance passes 30 at a given bucket once in 23
million, and at any of a hundred buckets in one series of 230,000 at most."""

Floats = NDArray[np.float64]


class ChangePoint(NamedTuple):
    """From bucket ``at`` on, counts are ``after`` on average, and ``before`` in the buckets since the change before."""

    at: int
    before: float
    after: float


def change_points(counts: Sequence[int]) -> list[ChangePoint]:
    """The changes of a series of counts in buckets of equal length, the earliest first."""
    series = np.asarray(counts, np.float64)
    if series.size < 2 * MIN_BUCKETS or not series.any():
        return []
    places = sorted(_splits(series, 0, _dispersion(series)))
    edges = [0, *places, series.size]
    means = [float(series[start:end].mean()) for start, end in pairwise(edges)]
    return [ChangePoint(at, means[index], means[index + 1]) for index, at in enumerate(places)]


def _splits(series: Floats, start: int, dispersion: float) -> Iterator[int]:
    if series.size < 2 * MIN_BUCKETS:
        return
    places = np.arange(MIN_BUCKETS, series.size - MIN_BUCKETS + 1)
    gains = _gains(series, places) / dispersion
    best = int(gains.argmax())
    if gains[best] < THRESHOLD:
        return
    at = int(places[best])
    yield start + at
    yield from _splits(series[:at], start, dispersion)
    yield from _splits(series[at:], start + at, dispersion)


def _gains(series: Floats, places: NDArray[np.int64]) -> Floats:
    """Twice the logarithm of how much likelier two Poisson levels make the series than one, for each split."""
    sums = np.cumsum(series)
    total, left = sums[-1], sums[places - 1]
    right = total - left
    share = places / series.size
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = left * np.log(left / (total * share)) + right * np.log(right / (total * (1 - share)))
    # Nothing on one side: its term is 0, as x log x is for x towards 0.
    only = total * np.log(1 / np.where(left == 0, 1 - share, share))
    return 2 * np.where((left == 0) | (right == 0), only, gain) if total else np.zeros(places.size)


def _dispersion(series: Floats) -> float:
    """Variance over mean, at least Poisson's 1, from the differences between neighbours: few of them are changes."""
    return max(1.0, float((np.diff(series) ** 2).mean()) / (2 * float(series.mean())))

"""Choice of a node's devices for a topology-aware pod, by the scores of their connections (NVLink, PCIe).

The bond of a combination is the sum of the scores of its pairs. A pod that requests one device gets the one with the
weakest bond to the others, so that well-connected devices stay free; a pod that requests several gets the combination
with the strongest bond. Among equal choices the first wins, as with HAMi.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import Ints
from engine.fit.devices.node_entry import PairScores, build_pair_matrix
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.fit import Fit
from engine.fit.judge.request.device_request import DeviceRequest

MAX_COMBINATIONS: Final = 200_000
"""Limit of a comparison of every combination (any choice among 20 devices); above, devices are added one by one."""

_MAX_NUMBERS: Final = 1_000_000
"""Array elements that one step over several nodes may take: 8 MB."""


def choose_devices(uuids: Sequence[str], count: int, scores: PairScores) -> list[int]:
    """Choose the `count` devices to take: their positions in `uuids`, ascending."""
    if count >= len(uuids) or not scores:
        return list(range(min(count, len(uuids))))
    pairs = build_pair_matrix(uuids, scores)
    # `uuids` has a MIG device once for each instance that it could give: only two that are given count as a pair.
    pairs[_match_same_device(uuids) if count == 1 else np.eye(len(uuids), dtype=np.bool_)] = 0
    best: list[int] = _choose_best(pairs[None], count)[0].tolist()
    return best


def _match_same_device(uuids: Sequence[str]) -> NDArray[np.bool_]:
    names = np.array(uuids)
    return np.asarray(names[:, None] == names)


def keep_best(fit: Fit, request: DeviceRequest, order: Ints, pairs: Sequence[Ints | None]) -> None:
    """Keep as many of the devices that `fit` took as are requested; the verdict of the others becomes FITS.

    order: of trying, shape (slots, n). pairs: per node the score of each pair of its slots, shape (slots, slots), or
    None where the node reports no scores.
    """
    taken = np.zeros(fit.picked.shape, np.bool_)
    by_turn = np.take_along_axis(fit.picked, order, axis=0).T
    counts = by_turn.sum(axis=1)
    for count in np.unique(counts[fit.passed]).tolist():
        nodes = np.flatnonzero(fit.passed & (counts == count))
        slots = order.T[nodes][by_turn[nodes]].reshape(-1, count)
        for some in _cut_runs(len(nodes), max(len(order) ** 2, _count_combinations(count, request.count))):
            best = _choose_best(
                _select_pairs(slots[some], [pairs[node] for node in nodes[some].tolist()]), request.count
            )
            taken[np.take_along_axis(slots[some], best, axis=1), nodes[some][:, None]] = True
    fit.verdict[fit.picked & fit.passed] = verdict_codes.FITS
    fit.verdict[taken] = verdict_codes.PICKED
    fit.picked = taken


def _count_combinations(size: int, count: int) -> int:
    choices = comb(size, count)
    return choices if choices <= MAX_COMBINATIONS else 1


def _cut_runs(size: int, numbers: int) -> Iterator[slice]:
    """Cut `size` nodes into slices that keep to `_MAX_NUMBERS` where a node takes `numbers` array elements."""
    step = max(_MAX_NUMBERS // numbers, 1)
    return (slice(start, start + step) for start in range(0, size, step))


def _select_pairs(slots: Ints, pairs: Sequence[Ints | None]) -> Ints:
    """Select the scores of each node's pairs of `slots`, shape (n, count, count), 0 on the diagonal."""
    selected = np.zeros((*slots.shape, slots.shape[1]), np.int64)
    for node, matrix in enumerate(pairs):
        if matrix is not None:
            selected[node] = matrix[slots[node][:, None], slots[node]]
    diagonal = np.arange(slots.shape[1])
    selected[:, diagonal, diagonal] = 0
    return selected


def _choose_best(pairs: Ints, count: int) -> Ints:
    """Choose the devices to take on each node: positions, ascending, shape (n, count); pairs: (n, devices, devices)."""
    nodes, size, _ = pairs.shape
    if count >= size:
        return np.broadcast_to(np.arange(size), (nodes, size))
    if count == 1:
        # argmin and argmax return the first among equals, which is HAMi's choice.
        return np.asarray(pairs.sum(axis=2).argmin(axis=1)[:, None])
    if comb(size, count) > MAX_COMBINATIONS:
        return np.array([_grow_combination(matrix, count) for matrix in pairs])
    chosen = _list_combinations(size, count)
    flat = pairs.reshape(nodes, size * size)
    # Shape (n, combinations), summed pair by pair: all pairs at once would take count * (count - 1) / 2 times as much.
    bonds = np.zeros((nodes, len(chosen)), np.int64)
    for i, j in combinations(range(count), 2):
        bonds += np.take(flat, chosen[:, i] * size + chosen[:, j], axis=1)
    return np.asarray(chosen[bonds.argmax(axis=1)])


@lru_cache(maxsize=8)
def _list_combinations(size: int, count: int) -> Ints:
    return np.array(list(combinations(range(size), count)), np.int64)


def _grow_combination(pairs: NDArray[np.int64], count: int) -> list[int]:
    """Start from the best pair and add the device with the strongest bond until there are enough."""
    first, second = np.unravel_index(int(pairs.argmax()), pairs.shape)
    chosen = [int(first), int(second)]
    bonds = pairs[chosen].sum(axis=0).astype(np.float64)
    # A device that is chosen already never wins again; only floats have -inf.
    bonds[chosen] = -np.inf
    while len(chosen) < count:
        device = int(bonds.argmax())
        chosen.append(device)
        bonds += pairs[device]
        bonds[device] = -np.inf
    return sorted(chosen)

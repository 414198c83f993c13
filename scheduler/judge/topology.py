"""Which of a node's cards a topology-aware pod gets, by how well they talk to each other.

A bond is the sum of the scores of all pairs of a choice. Of one card, the one that talks worst to the others is taken
(the well-connected stay free); of several, the combination that talks best among itself; the first of equal choices.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.devices.pair_scores import PairScores, pair_matrix
from scheduler.judge import verdict_codes
from scheduler.judge.device_matrix import Ints
from scheduler.judge.device_request import Ask
from scheduler.judge.fit import Fit

MOST_COMBINATIONS: Final = 200_000
"""Up to here (20 cards, any number of them) every combination is compared; above, cards are added one by one."""

_AT_ONCE: Final = 1_000_000
"""Numbers that one step over several nodes may take."""


def best_cards(uuids: Sequence[str], count: int, scores: PairScores) -> list[int]:
    """Positions in `uuids` of the `count` cards to take, ascending."""
    if count >= len(uuids) or not scores:
        return list(range(min(count, len(uuids))))
    best: list[int] = _best(pair_matrix(uuids, scores)[None], count)[0].tolist()
    return best


def keep_best(fit: Fit, ask: Ask, order: Ints, pairs: Sequence[Ints | None]) -> None:
    """Of all the cards that `fit` took, leave as many as are asked for; the others would do.

    order: of trying, (slots, n). pairs: per node the score of each pair of its slots, or None where it says none.
    """
    taken = np.zeros(fit.picked.shape, np.bool_)
    by_turn = np.take_along_axis(fit.picked, order, axis=0).T
    counts = by_turn.sum(axis=1)
    for count in np.unique(counts[fit.passed]).tolist():
        nodes = np.flatnonzero(fit.passed & (counts == count))
        slots = order.T[nodes][by_turn[nodes]].reshape(-1, count)
        for some in _runs(len(nodes), max(len(order) ** 2, _choices(count, ask.count))):
            best = _best(_pairs_of(slots[some], [pairs[node] for node in nodes[some].tolist()]), ask.count)
            taken[np.take_along_axis(slots[some], best, axis=1), nodes[some][:, None]] = True
    fit.verdict[fit.picked & fit.passed] = verdict_codes.FITS
    fit.verdict[taken] = verdict_codes.PICKED
    fit.picked = taken


def _choices(size: int, count: int) -> int:
    choices = comb(size, count)
    return choices if choices <= MOST_COMBINATIONS else 1


def _runs(size: int, numbers: int) -> Iterator[slice]:
    """Slices of `size` nodes that take `numbers` numbers each."""
    step = max(_AT_ONCE // numbers, 1)
    return (slice(start, start + step) for start in range(0, size, step))


def _pairs_of(slots: Ints, pairs: Sequence[Ints | None]) -> Ints:
    """The scores of each node's pairs of `slots`, shape (n, count, count)."""
    said = [node for node, matrix in enumerate(pairs) if matrix is not None]
    found = np.zeros((*slots.shape, slots.shape[1]), np.int64)
    for node in said:
        matrix, its = pairs[node], slots[node]
        assert matrix is not None  # noqa: S101 - those were left out
        found[node] = matrix[its[:, None], its]
    return found


def _best(pairs: Ints, count: int) -> Ints:
    """Which of the cards to take on each node, ascending, shape (n, count); pairs (n, cards, cards)."""
    nodes, size, _ = pairs.shape
    if count >= size:
        return np.broadcast_to(np.arange(size), (nodes, size))
    if count == 1:
        return np.asarray(pairs.sum(axis=2).argmin(axis=1)[:, None])
    if comb(size, count) > MOST_COMBINATIONS:
        return np.array([_grown(each, count) for each in pairs])
    chosen = _combinations(size, count)
    flat = pairs.reshape(nodes, size * size)
    bonds = np.zeros((nodes, len(chosen)), np.int64)
    for i, j in combinations(range(count), 2):
        bonds += np.take(flat, chosen[:, i] * size + chosen[:, j], axis=1)
    return np.asarray(chosen[bonds.argmax(axis=1)])


@lru_cache(maxsize=8)
def _combinations(size: int, count: int) -> Ints:
    return np.array(list(combinations(range(size), count)), np.int64)


def _grown(pairs: NDArray[np.int64], count: int) -> list[int]:
    """Start from the best pair and add the card with the strongest bond until there are enough."""
    first, second = np.unravel_index(int(pairs.argmax()), pairs.shape)
    chosen = [int(first), int(second)]
    bonds = pairs[chosen].sum(axis=0).astype(np.float64)
    bonds[chosen] = -np.inf
    while len(chosen) < count:
        card = int(bonds.argmax())
        chosen.append(card)
        bonds += pairs[card]
        bonds[card] = -np.inf
    return sorted(chosen)

"""Which of a node's cards a topology-aware pod gets, by how well they talk to each other."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, repeat
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

PairScores = Mapping[str, Mapping[str, int]]
"""{uuid: {uuid: score}}, higher is better; pairs that are not named score 0."""

MOST_COMBINATIONS: Final = 200_000
"""Up to here (20 cards, any number of them) every combination is compared; above, cards are added one by one."""

_NONE: Final[Mapping[str, int]] = {}
_LARGEST_SCORE: Final = 2**40  # thousands of pairs still add up within 64 bits


def best_cards(uuids: Sequence[str], count: int, scores: PairScores) -> list[int]:
    """Positions in `uuids` of the `count` cards to take, ascending; the first of equal choices.

    Of one, the card that talks worst to the others (the well-connected stay free); of several, the combination that
    talks best among itself.
    """
    if count >= len(uuids) or not scores:
        return list(range(min(count, len(uuids))))
    pairs = _matrix(uuids, scores)
    if count == 1:
        return [int(pairs.sum(axis=1).argmin())]
    if comb(len(uuids), count) > MOST_COMBINATIONS:
        return _grown(pairs, count)
    chosen = _combinations(len(uuids), count)
    bonds = sum(pairs[chosen[:, i], chosen[:, j]] for i, j in combinations(range(count), 2))
    best: list[int] = chosen[int(np.argmax(bonds))].tolist()
    return best


def _matrix(uuids: Sequence[str], scores: PairScores) -> NDArray[np.int64]:
    rows = [list(map(scores.get(one, _NONE).get, uuids, repeat(0))) for one in uuids]
    try:
        pairs = np.array(rows, np.int64)
    except OverflowError:
        pairs = np.array([[max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)) for score in row] for row in rows])
    pairs = np.clip(pairs, -_LARGEST_SCORE, _LARGEST_SCORE)
    np.fill_diagonal(pairs, 0)
    return pairs


@lru_cache(maxsize=8)
def _combinations(size: int, count: int) -> NDArray[np.int16]:
    return np.array(list(combinations(range(size), count)), np.int16)


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

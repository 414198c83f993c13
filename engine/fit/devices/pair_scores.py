"""Connections between a node's devices, as a matrix of scores."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

PairScores = Mapping[str, Mapping[str, int]]
"""`{uuid: {uuid: score}}`, higher is better; pairs that are not named score 0."""

_NONE: Final[Mapping[str, int]] = {}
_LARGEST_SCORE: Final = 2**40  # thousands of pairs still add up within 64 bits


def build_pair_matrix(uuids: Sequence[str], scores: PairScores) -> NDArray[np.int64]:
    """Build the scores of each device with each other one, and with itself, shape (devices, devices).

    HAMi counts what the annotation says of a device and itself where a pod gets two instances of a MIG device.
    """
    rows = [list(map(scores.get(uuid, _NONE).get, uuids, repeat(0))) for uuid in uuids]
    try:
        pairs = np.array(rows, np.int64)
    except OverflowError:
        # JSON holds integers of any length, numpy only 64 bits.
        pairs = np.array([[max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)) for score in row] for row in rows])
    return np.clip(pairs, -_LARGEST_SCORE, _LARGEST_SCORE)

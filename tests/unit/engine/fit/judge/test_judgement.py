"""Distinct rows of keys that are packed into 64 bits."""

import numpy as np
import pytest

from engine.fit.judge.judgement import _find_distinct


@pytest.mark.parametrize("largest", [1, 9, 2**20, 2**40])
def test_equal_rows_are_found_whatever_numbers_they_hold(largest: int) -> None:
    # Ten columns of 2**40 take 400 bits: the numbering starts again on the way.
    generator = np.random.default_rng(35)
    rows = generator.integers(0, largest, (40, 10), endpoint=True)
    keys = rows[generator.integers(0, 40, 200)]
    keys[0, -1] = keys[1, -1] + 1
    first, which = _find_distinct(keys)
    assert len(first) == len({tuple(row) for row in keys.tolist()})
    assert (keys[first][which] == keys).all()
    assert [keys.tolist().index(keys[index].tolist()) for index in first] == first.tolist()


def test_without_rows_nothing_is_distinct() -> None:
    first, which = _find_distinct(np.zeros((0, 4), np.int64))
    assert (len(first), len(which)) == (0, 0)

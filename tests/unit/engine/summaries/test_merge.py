"""Counts of nodes by verdict."""

import numpy as np

from engine.summaries.merge import count_fitting, count_verdicts


def test_nodes_are_counted_by_the_verdicts_that_occur() -> None:
    counts = count_verdicts(["refused", "fits", "picked"], np.array([0, 0, 1]))
    assert counts == {"fits": 1, "refused": 2}
    assert count_fitting(counts) == 1
    assert count_fitting({"fits": 2, "picked": 1, "refused": 4}) == 3
    assert count_fitting({"refused": 4}) == 0

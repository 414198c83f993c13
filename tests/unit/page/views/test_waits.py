"""The wait of placed pods, of whom some had their node when they were first observed."""

import pytest

from page.views.waits import is_wait_known


@pytest.mark.parametrize(("placed", "measured", "known"), [(0, 0, True), (3, 3, True), (3, 2, False), (3, 0, False)])
def test_the_wait_is_known_where_every_placed_pod_was_measured(placed: int, measured: int, known: bool) -> None:
    assert is_wait_known(placed, measured) is known

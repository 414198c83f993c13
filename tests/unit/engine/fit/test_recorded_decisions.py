"""Filter calls that HAMi itself has answered: nodes, scores, devices and reasons."""

from tests.conformance.__main__ import COMMITTED, SECOND, THIRD
from tests.conformance.shares import choose_every, list_wrong


def test_every_filter_call_is_answered_as_hami_answers() -> None:
    assert list_wrong(COMMITTED, iter, "filter") == []


def test_a_share_of_the_filter_calls_for_other_vendors_is_answered_as_hami_answers() -> None:
    assert list_wrong(SECOND, choose_every(4), "vendor filter") == []
    assert list_wrong(THIRD, choose_every(4), "vendor filter") == []

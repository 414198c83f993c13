"""Annotations that HAMi's own functions have read and written, and quantities that they have parsed."""

from tests.conformance.__main__ import COMMITTED, SECOND, THIRD
from tests.conformance.shares import choose_every, list_wrong


def test_every_text_is_read_and_written_as_hami_does() -> None:
    assert list_wrong(COMMITTED, iter, "codec") == []


def test_a_share_of_other_vendors_texts_is_read_and_written_as_hami_does() -> None:
    assert list_wrong(SECOND, choose_every(4), "vendor codec") == []
    assert list_wrong(THIRD, choose_every(4), "vendor codec") == []

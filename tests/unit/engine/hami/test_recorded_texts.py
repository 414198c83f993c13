"""Annotations that HAMi's own functions have read and written, and quantities that they have parsed."""

from tests.conformance.__main__ import COMMITTED, SECOND, THIRD
from tests.conformance.shares import list_wrong


def test_every_text_is_read_and_written_as_hami_does() -> None:
    assert list_wrong(COMMITTED, iter, "codec") == []


def test_every_text_of_other_vendors_is_read_and_written_as_hami_does() -> None:
    assert list_wrong(SECOND, iter, "vendor codec") == []
    assert list_wrong(THIRD, iter, "vendor codec") == []

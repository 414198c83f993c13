"""The trace of a record. The examples are those of W3C's Trace Context."""

import pytest

from schemas.codec.records import EncodedRecord
from schemas.codec.trace_context import trace_id, traceparent_of, valid, with_traceparent

EXAMPLE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
RECORD = EncodedRecord(b"k", b"{}", [("ce_id", b"a1/nodes/0")])


def test_a_record_carries_the_trace_as_cloud_events_names_it() -> None:
    traced = with_traceparent(RECORD, EXAMPLE)
    assert traced.headers == [("ce_id", b"a1/nodes/0"), ("ce_traceparent", EXAMPLE)]
    assert traceparent_of(traced.headers) == EXAMPLE
    assert trace_id(EXAMPLE) == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_record_of_no_trace_is_as_it_was() -> None:
    assert with_traceparent(RECORD, b"") is RECORD
    assert traceparent_of(RECORD.headers) == b""
    assert trace_id(b"") == ""


@pytest.mark.parametrize(
    ("found", "read"),
    [
        (EXAMPLE, EXAMPLE),
        # A later version may say more; what version 00 knows of it holds.
        (b"cc" + EXAMPLE[2:] + b"-what the future holds", EXAMPLE),
        (b"ff" + EXAMPLE[2:], b""),
        (EXAMPLE.upper(), b""),
        (EXAMPLE[:-1], b""),
        (EXAMPLE + b"0", b""),
        (b"00-" + b"0" * 32 + EXAMPLE[35:], b""),
        (EXAMPLE[:36] + b"0" * 16 + b"-01", b""),
        (EXAMPLE + b"\n", b""),
        (b"", b""),
        (b"\xff" * 55, b""),
    ],
)
def test_what_is_no_traceparent_is_none(found: bytes, read: bytes) -> None:
    assert valid(found) == read
    assert traceparent_of([("ce_traceparent", found)]) == read

"""The trace of a record. The examples are those of W3C's Trace Context."""

import pytest

from schemas.codec.records import EncodedRecord
from schemas.codec.trace_context import NO_TRACE, Trace, trace_of, trace_of_caller, with_trace

PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STATE = b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
RECORD = EncodedRecord(b"k", b"{}", [("ce_id", b"a1/nodes/0")])


def test_a_record_carries_the_trace_as_cloud_events_names_it() -> None:
    traced = with_trace(RECORD, Trace(PARENT, STATE))
    assert traced.headers == [("ce_id", b"a1/nodes/0"), ("ce_traceparent", PARENT), ("ce_tracestate", STATE)]
    assert trace_of(traced.headers) == Trace(PARENT, STATE)
    assert trace_of(traced.headers).id == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_trace_without_a_state_adds_one_header() -> None:
    traced = with_trace(RECORD, Trace(PARENT))
    assert traced.headers == [("ce_id", b"a1/nodes/0"), ("ce_traceparent", PARENT)]
    assert trace_of(traced.headers) == Trace(PARENT)


def test_a_record_of_no_trace_is_as_it_was() -> None:
    assert with_trace(RECORD, NO_TRACE) is RECORD
    assert trace_of(RECORD.headers) == NO_TRACE
    assert not NO_TRACE
    assert NO_TRACE.id == ""


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (PARENT, PARENT),
        # A later version may say more; what version 00 knows of it holds.
        (b"cc" + PARENT[2:] + b"-what the future holds", PARENT),
        (b"ff" + PARENT[2:], b""),
        (PARENT.upper(), b""),
        (PARENT[:-1], b""),
        (PARENT + b"0", b""),
        (b"00-" + b"0" * 32 + PARENT[35:], b""),
        (PARENT[:36] + b"0" * 16 + b"-01", b""),
        (PARENT + b"\n", b""),
        (b"", b""),
        (b"\xff" * 55, b""),
    ],
)
def test_what_is_no_traceparent_is_no_trace_and_has_no_state(header: bytes, read: bytes) -> None:
    expected = Trace(read, STATE) if read else NO_TRACE
    assert trace_of_caller(header, STATE) == expected
    assert trace_of([("ce_tracestate", STATE), ("ce_traceparent", header)]) == expected


@pytest.mark.parametrize(
    ("header", "read"),
    [
        (STATE, STATE),
        # Spaces around members and empty members are allowed (section 3.3.1).
        (b"rojo=00f067aa0ba902b7 ,\tcongo=t61rcWkgMzE", STATE),
        (b",rojo=00f067aa0ba902b7,,congo=t61rcWkgMzE,", STATE),
        # A tenant of a vendor; a value with spaces inside.
        (b"fw529a3039@dt=FfDUbZ2Y", b"fw529a3039@dt=FfDUbZ2Y"),
        (b"a=b c", b"a=b c"),
        (b"Congo=1", b""),
        (b"rojo", b""),
        (b"rojo=", b""),
        (b"rojo=a=b", b""),
        (b"rojo=1\n", b""),
        (b"rojo=\xff", b""),
        (b"rojo=1,\x00", b""),
        (b"k" * 257 + b"=1", b""),
        (b"k=" + b"1" * 257, b""),
        (b",".join(b"k%d=1" % number for number in range(33)), b""),
    ],
)
def test_what_is_no_tracestate_is_left_out_and_the_trace_continues(header: bytes, read: bytes) -> None:
    assert trace_of_caller(PARENT, header) == Trace(PARENT, read)
    assert trace_of([("ce_traceparent", PARENT), ("ce_tracestate", header)]) == Trace(PARENT, read)


def test_a_long_tracestate_loses_long_members_first_and_then_the_last_ones() -> None:
    """Section 3.3.1.5: longer than 128 characters first, then from the end; 512 are always passed on."""
    long = b"long=" + b"x" * 130
    short = [b"k%02d=" % number + b"x" * 45 for number in range(11)]
    assert trace_of_caller(PARENT, b",".join([short[0], long])).state == b",".join([short[0], long])
    assert trace_of_caller(PARENT, b",".join([long, *short])).state == b",".join(short[:10])
    assert len(b",".join(short[:10])) <= 512 < len(b",".join(short))

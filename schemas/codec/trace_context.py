"""The trace that a record belongs to: W3C's ``traceparent``, as CloudEvents' extension for tracing has it."""

import re
from collections.abc import Iterable
from typing import Final

from schemas.codec.records import EncodedRecord

HEADER: Final = "ce_traceparent"

# A later version may append fields behind the flags; ids of zeros are none.
_FORM: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-[ -~]*)?", re.DOTALL
)


def valid(traceparent: bytes) -> bytes:
    """The same in version 00; empty where it is none."""
    found = _FORM.fullmatch(traceparent)
    return b"00-" + found[1] if found else b""


def traceparent_of(headers: Iterable[tuple[str, bytes]]) -> bytes:
    """That of a record; empty where it has none, or what is none."""
    for name, value in headers:
        if name == HEADER:
            return valid(value or b"")
    return b""


def with_traceparent(record: EncodedRecord, traceparent: bytes) -> EncodedRecord:
    """The record as part of the trace; the same record where ``traceparent`` is empty."""
    return record._replace(headers=[*record.headers, (HEADER, traceparent)]) if traceparent else record


def trace_id(traceparent: bytes) -> str:
    """32 hexadecimal digits; empty where there is no trace."""
    return traceparent[3:35].decode()

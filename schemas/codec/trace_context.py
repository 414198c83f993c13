"""The trace that a record belongs to: W3C's ``traceparent`` and ``tracestate``, as CloudEvents' extension has them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .records import EncodedRecord

PARENT_HEADER: Final = "ce_traceparent"
STATE_HEADER: Final = "ce_tracestate"

# A later version may append fields behind the flags; ids of zeros are none.
_PARENT: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-[ -~]*)?", re.DOTALL
)
_MEMBER: Final = re.compile(rb"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_MAX_MEMBERS: Final = 32
_LONG: Final = 128
_MAX_BYTES: Final = 512
"""Size that every intermediary has to pass on. Longer states are cut, as W3C describes: long members first, then the
last ones."""


class Trace(NamedTuple):
    """W3C's trace context; false where there is none."""

    parent: bytes = b""
    """``traceparent`` in version 00: the trace, and the span that is above."""
    state: bytes = b""
    """``tracestate``: what the vendors of the caller's tracing want to find again."""

    def __bool__(self) -> bool:
        return bool(self.parent)

    @property
    def id(self) -> str:
        """32 hexadecimal digits; empty where there is no trace."""
        return self.parent[3:35].decode()


NO_TRACE: Final = Trace()


def trace_of_caller(traceparent: bytes, tracestate: bytes = b"") -> Trace:
    """Parse untrusted headers; an invalid ``traceparent`` gives no trace, an invalid ``tracestate`` is left out."""
    match = _PARENT.fullmatch(traceparent)
    return Trace(b"00-" + match[1], _cut_state(tracestate) if tracestate else b"") if match else NO_TRACE


def trace_of(headers: Sequence[tuple[str, bytes]]) -> Trace:
    """Read the trace of a record."""
    # Most records have none, and each is looked at.
    parent = _find_first(headers, PARENT_HEADER)
    return trace_of_caller(parent, _find_first(headers, STATE_HEADER)) if parent else NO_TRACE


def _find_first(headers: Sequence[tuple[str, bytes]], wanted: str) -> bytes:
    for name, value in headers:
        if name == wanted:
            return value or b""
    return b""


def with_trace(record: EncodedRecord, trace: Trace) -> EncodedRecord:
    """Add the trace to the record; without a trace return the same record."""
    return record._replace(headers=[*record.headers, *_build_headers(trace)]) if trace else record


def _build_headers(trace: Trace) -> Iterator[tuple[str, bytes]]:
    yield PARENT_HEADER, trace.parent
    if trace.state:
        yield STATE_HEADER, trace.state


def _cut_state(text: bytes) -> bytes:
    members = [member for part in text.split(b",") if (member := part.strip(b" \t"))]
    if len(members) > _MAX_MEMBERS or not all(map(_MEMBER.fullmatch, members)):
        return b""
    if len(b",".join(members)) > _MAX_BYTES:
        members = [member for member in members if len(member) <= _LONG]
    while len(joined := b",".join(members)) > _MAX_BYTES:
        members.pop()
    return joined

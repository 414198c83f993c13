"""Every event that a reader emits can be read by its consumers."""

from collections.abc import Iterable

from schemas.codec.records import Rejected, decode, encode
from schemas.events import Event
from tests.fuzz.limits import BrokenPromiseError


def check(events: Iterable[Event]) -> None:
    """Raise ``BrokenPromiseError`` for an event that can't be read."""
    for event in events:
        record = encode(event)
        again = decode(record.value, record.headers)
        if isinstance(again, Rejected):
            raise BrokenPromiseError(f"{event.id}: {again}")

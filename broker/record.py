"""A record as it was read from a topic, and one that is to be sent. Values only: importing them needs no client."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from schemas.codec import records

# A callable and not an offset to commit: only the reader of the record knows when its partition was taken away.
Acknowledge = Callable[[], object]


class Record(NamedTuple):
    """A record as it was read, and how to acknowledge it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp: int
    """Milliseconds since 1970: when the broker took it, or the producer's time, by the topic."""
    acknowledge: Acknowledge


class Outgoing(NamedTuple):
    """An encoded event on its way to a topic."""

    topic: str
    record: records.EncodedRecord
    partition: int | None = None
    """None: the partition that follows from the key."""


class Place(NamedTuple):
    """Where a record lies on its topic."""

    partition: int
    offset: int

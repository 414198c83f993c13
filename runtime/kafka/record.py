"""A record as it was read from a topic, and one that is to be sent. Values only: importing them needs no client."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from runtime.telemetry.logs import about
from schemas.codec import records
from schemas.codec.trace_context import trace_of
from schemas.events import AttemptEvent, PodObserved

_MAX_LOGGED: Final = 400
"""Characters of a header in the log: any producer may send anything."""

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


def about_record(headers: Iterable[tuple[str, bytes]] | None) -> dict[str, str]:
    """For ``extra=`` of a log call: the attempt or the pod that a record claims to be about, by its headers alone."""
    named = list(headers or ())
    kind = records.event_type(named)
    if isinstance(kind, records.Rejected) or not issubclass(kind, AttemptEvent | PodObserved):
        return {}
    texts = {name: (value or b"")[:_MAX_LOGGED].decode(errors="replace") for name, value in named}
    attempt = texts.get("ce_id", "").partition("/")[0] if issubclass(kind, AttemptEvent) else ""
    return about(attempt=attempt, pod=texts.get("ce_subject", ""), trace=trace_of(named).id)


def about_attempt(event: AttemptEvent) -> dict[str, str]:
    """The same of an event that was decoded."""
    return about(attempt=event.attempt_id, pod=event.pod, cluster=event.cluster)

"""Records as they were read from topics. Values only: importing them needs no client."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar

from runtime.telemetry.logs import identify_subject
from schemas.codec import records
from schemas.codec.trace_context import trace_of
from schemas.events import AttemptEvent, PodObserved

_MAX_LOGGED: Final = 400
"""Characters of a header in the log: any producer may send anything."""

E = TypeVar("E", covariant=True)

# A callable and not an offset to commit: only the reader of the record knows when its partition was taken away.
Acknowledge = Callable[[], object]


def _ignore() -> None:
    """Acknowledge nothing: offsets are committed elsewhere."""


class Record(NamedTuple):
    """A record that was read, and the callback that acknowledges it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp: int = 0
    """Milliseconds since 1970: the broker's time or the producer's, by the topic's configuration."""
    acknowledge: Acknowledge = _ignore

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return len(self.value or b"")


def to_record(read: Any) -> Record:
    """Convert a record of aiokafka's consumer."""
    return Record(read.topic, read.partition, read.offset, read.key, read.value, read.headers, read.timestamp)


class DecodedRecord(NamedTuple, Generic[E]):
    """An event, and the record that it was decoded from."""

    event: E
    record: Record

    @property
    def value(self) -> bytes:
        """The event's JSON."""
        # A record without a value is no event.
        return self.record.value or b""


class RecordPosition(NamedTuple):
    """Partition and offset of a record on its topic."""

    partition: int
    offset: int
    timestamp: int = 0
    """Milliseconds since 1970, as in ``Record``."""


def identify_record(headers: Iterable[tuple[str, bytes]] | None) -> dict[str, str]:
    """Identify the attempt or the pod of a record by its headers, for ``extra=`` of a log call."""
    named = list(headers or ())
    kind = records.find_event_type(named)
    if isinstance(kind, records.Rejected) or not issubclass(kind, AttemptEvent | PodObserved):
        return {}
    texts = {name: (value or b"")[:_MAX_LOGGED].decode(errors="replace") for name, value in named}
    attempt = texts.get("ce_id", "").partition("/")[0] if issubclass(kind, AttemptEvent) else ""
    return identify_subject(attempt=attempt, pod=texts.get("ce_subject", ""), trace=trace_of(named).id)


def identify_attempt(event: AttemptEvent) -> dict[str, str]:
    """Identify the attempt and the pod of a decoded event, for ``extra=`` of a log call."""
    return identify_subject(attempt=event.attempt_id, pod=event.pod, cluster=event.cluster)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MILLISECONDS: Final = 250_000_000_000_000
"""A moment in the year 9892. A producer may write any number, also one that no ``datetime`` can hold."""


def record_time(record: Any) -> datetime:
    """Return the timestamp of a record. One outside 1970 to 9892 counts as the nearer end."""
    return _EPOCH + timedelta(milliseconds=min(max(record.timestamp, 0), _MAX_MILLISECONDS))

"""When Kafka received a record: the one clock that records of all partitions share. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MILLISECONDS: Final = 250_000_000_000_000
"""In the year 9892. A producer may write any number, also one that no ``datetime`` can hold."""


def record_time(record: Any) -> datetime:
    """The timestamp of an aiokafka record. One outside 1970 to 9892 is taken as the nearer end."""
    return _EPOCH + timedelta(milliseconds=min(max(record.timestamp, 0), _MAX_MILLISECONDS))

"""Indices of whole months for families with an index a day, made ahead of the month where a day has little.

Writers decide by what is there: a document goes into the index of its month if it exists, else into that of its day.
So the index of a month is made days before the first document about it, and never while the month runs.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from schemas.index_family import LONGEST_MONTH, Index, find_next_month

MAX_MONTH_BYTES: Final = 5 * 1024**3
"""Limit of an index of a month, in bytes of its primary shards, as the busiest day of the family lets expect."""
MADE_AHEAD: Final = (timedelta(days=2), timedelta(days=7))
"""Shortest and longest time before a month in which its index is made. Documents are a day ahead at most."""


class NextMonth(NamedTuple):
    """Index to be made, and the bytes that it is expected to have."""

    name: str
    expected_bytes: int


def choose_next_month(index: Index, sizes: Mapping[str, int], now: datetime) -> NextMonth | None:
    """Choose the index of the next month; None where its days get an index each.

    ``sizes``: bytes of the primary shards of the family's indices, by name.
    """
    next_month = find_next_month(now)
    name, _ = index.derive_month(index.name(next_month))
    if not MADE_AHEAD[0] < next_month - now <= MADE_AHEAD[1] or name in sizes:
        return None
    # The busiest day, as far as it is known: many months of little and one of much would be a shard of any size.
    days = [_derive_bytes_a_day(index, stored, size, now) for stored, size in sizes.items()]
    busiest = max((bytes_a_day for bytes_a_day in days if bytes_a_day is not None), default=None)
    # Without any data the fleet's size is unknown.
    if busiest is None or (expected := int(busiest * LONGEST_MONTH.days)) > MAX_MONTH_BYTES:
        return None
    return NextMonth(name, expected)


def _derive_bytes_a_day(index: Index, name: str, size: int, now: datetime) -> float | None:
    """Derive what the index got each day; None before its first day has ended."""
    if (period := index.parse_period(name)) is None:
        return None
    begin, end = period
    # Of a month that runs, its days until now.
    days = (min(end, now) - begin) / timedelta(days=1)
    return size / days if days >= 1 else None

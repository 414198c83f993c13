"""Records that are missing, in words: pure."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

_NAMED_PARTS: Final = 10


def count_of(count: int, kind: str) -> str:
    return f"{count} {kind} record" + ("" if count == 1 else "s")


def absent_records(kind: str, records: int, known: Mapping[int, object]) -> str:
    """At most ``_NAMED_PARTS`` parts are named: a record may claim any number of them."""
    absent = list(islice((part for part in range(records) if part not in known), _NAMED_PARTS))
    parts = ", ".join(map(str, absent))
    more = ", …" if len(absent) == _NAMED_PARTS else ""
    return f"{records - len(known)} of {count_of(records, kind)} are missing (parts {parts}{more})"

"""Records that are missing, in words: pure."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

_NAMED_PARTS: Final = 10


def format_count(count: int, kind: str) -> str:
    return f"{count} {kind} record" + ("" if count == 1 else "s")


def describe_missing_parts(kind: str, records: int, arrived: Mapping[int, object]) -> str:
    """Describe the missing records, naming at most ``_NAMED_PARTS`` parts: a record may claim any number of them."""
    absent = list(islice((part for part in range(records) if part not in arrived), _NAMED_PARTS))
    parts = ", ".join(map(str, absent))
    more = ", …" if len(absent) == _NAMED_PARTS else ""
    return f"{records - len(arrived)} of {format_count(records, kind)} are missing (parts {parts}{more})"

"""The types of the fields of events."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, FailFast, Field

_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


_WRITTEN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", re.ASCII)
_WRITTEN_LENGTHS: Final = (20, 27)


# The records of an attempt share a few times, and the history of its pod has those of the attempts before.
@lru_cache(maxsize=4_096)
def _parse_written(text: str) -> datetime | None:
    """Parse a time in the form in which events are encoded; None for another form, and for a time that does not
    exist."""
    # Later versions of Python take this for the next midnight.
    if not _WRITTEN.fullmatch(text) or text[11:13] == "24":
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _from_text(moment: Any) -> Any:
    if isinstance(moment, str) and len(moment) in _WRITTEN_LENGTHS and (parsed := _parse_written(moment)):
        return parsed
    # pydantic would take digits in a string for seconds since 1970.
    if isinstance(moment, datetime) or (isinstance(moment, str) and _RFC3339.fullmatch(moment)):
        return moment
    raise ValueError("a time is RFC 3339 text with a zone, as in 2026-01-02T03:04:05.678901Z")


def _to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC and moment.year >= 1970:
        return moment
    if moment.tzinfo is None:
        raise ValueError("a time needs a zone, as in 2026-01-02T03:04:05.678901Z")
    try:
        utc = moment.astimezone(UTC)
    # A time of year 1 or 9999 with an offset leaves the range of ``datetime``.
    except OverflowError:
        raise ValueError("a time lies between the years 1970 and 9999") from None
    if utc.year < 1970:
        raise ValueError("a time lies between the years 1970 and 9999")
    return utc


Moment = Annotated[datetime, BeforeValidator(_from_text), AfterValidator(_to_utc)]
"""A time in UTC to the microsecond, from 1970 on; RFC 3339 in JSON."""

# Strict: pydantic would take 1 and "yes" for True, and "12" for 12. Bounds are those of 64 bits, which Kafka's other
# readers and OpenSearch's ``long`` have.
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Words = Annotated[list[str], FailFast()]
"""Texts in order; the first wrong entry is reported, not every one of thousands."""


DEFAULT_CLUSTER: Final = "default"
ClusterName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$")]
"""Names a Kubernetes cluster in everything that several of them share: at most 63 lower-case letters, digits, ``-`` and
``.``."""

"""Parts of moments and durations."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from engine.claims.cel.functions import Functions, Overload, define, index, make_overload
from engine.claims.cel.values import Duration, EvaluationError, Timestamp, ValueSizeError

_NANO: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET: Final = re.compile(r"([+-]?)(\d{1,2}):(\d{2})", re.ASCII)


def _to_local_time(moment: Timestamp, zone: str = "UTC") -> datetime:
    """Convert a moment to a time of day in a zone. Zones by name depend on the scheduler's machine."""
    seconds = moment.nanoseconds // _NANO
    if zone not in ("UTC", ""):
        offset = _OFFSET.fullmatch(zone)
        if not offset:
            raise ValueSizeError(f"the time zone {zone!r} is known to the scheduler's machine only")
        minutes = int(offset[2]) * 60 + int(offset[3])
        seconds += (-minutes if offset[1] == "-" else minutes) * 60
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


def _describe_part(read: Callable[[datetime], int]) -> tuple[Overload, Overload]:
    """Describe the overloads that read one part of a moment, in UTC or in a zone."""
    return (
        make_overload(lambda moment: read(_to_local_time(moment)), Timestamp),
        make_overload(lambda moment, zone: read(_to_local_time(moment, zone)), Timestamp, str),
    )


def _count_milliseconds(moment: Timestamp, _: str = "") -> int:
    return moment.nanoseconds % _NANO // 10**6


def _truncate(duration: Duration, unit: int) -> int:
    """Divide a duration by a unit, towards zero."""
    amount = abs(duration.nanoseconds) // unit
    return amount if duration.nanoseconds >= 0 else -amount


TIMES: Final[Functions] = index(
    define("getFullYear", *_describe_part(lambda time: time.year)),
    define("getMonth", *_describe_part(lambda time: time.month - 1)),
    define("getDayOfMonth", *_describe_part(lambda time: time.day - 1)),
    define("getDate", *_describe_part(lambda time: time.day)),
    define("getDayOfWeek", *_describe_part(lambda time: time.isoweekday() % 7)),
    define("getDayOfYear", *_describe_part(lambda time: time.timetuple().tm_yday - 1)),
    define(
        "getHours",
        *_describe_part(lambda time: time.hour),
        make_overload(lambda value: _truncate(value, 3600 * _NANO), Duration),
    ),
    define(
        "getMinutes",
        *_describe_part(lambda time: time.minute),
        make_overload(lambda value: _truncate(value, 60 * _NANO), Duration),
    ),
    define(
        "getSeconds",
        *_describe_part(lambda time: time.second),
        make_overload(lambda value: _truncate(value, _NANO), Duration),
    ),
    define(
        "getMilliseconds",
        make_overload(_count_milliseconds, Timestamp),
        make_overload(_count_milliseconds, Timestamp, str),
        make_overload(lambda value: _truncate(value, 10**6), Duration),
    ),
)
"""Methods by their names."""

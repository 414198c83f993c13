"""Conversions between CEL's types."""

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from engine.claims.cel.arithmetic import check_duration, check_int, check_timestamp, check_uint
from engine.claims.cel.functions import ANY, Functions, define, index, make_overload
from engine.claims.cel.values import (
    INT_MAX,
    INT_MIN,
    TYPE_NAMES,
    UINT_MAX,
    Address,
    Duration,
    EvaluationError,
    Network,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    name_type,
)

_NANO: Final = 10**9
_UNITS: Final = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": _NANO, "m": 60 * _NANO, "h": 3600 * _NANO,
}  # fmt: skip
_DURATION: Final = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,25}")
_DOUBLE: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LARGE: Final = 6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _refuse(value: Value, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{name_type(value)}' to '{target}'")


def parse_duration(text: str) -> Duration:
    """Parse a duration as Go does, such as ``1h30m``; raise EvaluationError for anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(digits):
        part = _DURATION.match(digits, position)
        if not part or not (part[1] or (part[2] or "")[1:]):
            raise _refuse(text, "google.protobuf.Duration")
        unit, fraction = _UNITS[part[3]], (part[2] or ".")[1:21]
        total += int(part[1][:20] or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = part.end()
    if not digits or total > INT_MAX:
        raise _refuse(text, "google.protobuf.Duration")
    return check_duration(-total if text.startswith("-") else total)


def parse_timestamp(text: str) -> Timestamp:
    """Parse a moment in the form of RFC 3339; raise EvaluationError for anything else."""
    parts = _TIMESTAMP.fullmatch(text)
    if not parts:
        raise _refuse(text, "google.protobuf.Timestamp")
    try:
        moment = datetime(*(int(part) for part in parts.groups()[:6]), tzinfo=UTC)  # type: ignore[misc,arg-type] # six
    except ValueError:
        raise _refuse(text, "google.protobuf.Timestamp") from None
    offset = timedelta(hours=int(parts[9] or 0), minutes=int(parts[10] or 0))
    seconds = (moment - _EPOCH) // timedelta(seconds=1) + (offset // timedelta(seconds=1)) * (
        1 if parts[8] == "-" else -1
    )
    return check_timestamp(seconds * _NANO + int((parts[7] or "0")[:9].ljust(9, "0")))


def to_string(value: Value) -> str:
    """Convert a value to a text as CEL does."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return print_double(value)
        case bytes():
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case Duration():
            return _print_seconds(value.nanoseconds)
        case Timestamp():
            return _print_timestamp(value.nanoseconds)
        case TypeValue():
            return value.name
        case _:
            return str(value)


def print_double(value: float) -> str:
    """Print a double as Go's ``%g``: the fewest digits, with an exponent where that is below -4 or above 5."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    sign, digits, _ = number.as_tuple()
    power = number.adjusted()
    if not number:
        return "-0" if sign else "0"
    if -4 <= power < _LARGE:
        return f"{number:f}"
    text = "".join(map(str, digits))
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'+' if power >= 0 else '-'}{abs(power):02d}"


def _print_seconds(nanoseconds: int) -> str:
    seconds, fraction = divmod(abs(nanoseconds), _NANO)
    text = f"{seconds}.{fraction:09d}".rstrip("0").rstrip(".") if fraction else str(seconds)
    return f"{'-' if nanoseconds < 0 else ''}{text}s"


def _print_timestamp(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, _NANO)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}{f'.{fraction:09d}'.rstrip('0') if fraction else ''}Z"


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text) or not INT_MIN <= int(text) <= INT_MAX:
        raise _refuse(text, "int")
    return int(text)


def _parse_uint(text: str) -> Uint:
    if not _INTEGER.fullmatch(text) or text[0] in "+-" or int(text) > UINT_MAX:
        raise _refuse(text, "uint")
    return Uint(text)


def _parse_double(text: str) -> float:
    lower = text.lower().lstrip("+-")
    if not _DOUBLE.fullmatch(text) and lower not in ("inf", "infinity", "nan"):
        raise _refuse(text, "double")
    number = float(text)
    if math.isinf(number) and lower[0] != "i":
        raise _refuse(text, "double")
    return number


def _parse_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _refuse(text, "bool")


def _truncate_to_int(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _truncate_to_uint(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(value))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def return_same(value: Value) -> Value:
    """Return the value."""
    return value


def _name_value_type(value: Value) -> TypeValue:
    return TypeValue(TYPE_NAMES.get(type(value), "dyn"))


CONVERSIONS: Final[Functions] = index(
    define("bool", make_overload(return_same, bool), make_overload(_parse_bool, str)),
    define("bytes", make_overload(return_same, bytes), make_overload(_encode, str)),
    define(
        "double",
        make_overload(return_same, float),
        make_overload(float, int),
        make_overload(float, Uint),
        make_overload(_parse_double, str),
    ),
    define(
        "duration",
        make_overload(return_same, Duration),
        make_overload(lambda value: check_duration(value), int),
        make_overload(parse_duration, str),
    ),
    define("dyn", make_overload(return_same, ANY)),
    define(
        "int",
        make_overload(return_same, int),
        make_overload(_truncate_to_int, float),
        make_overload(lambda value: value.nanoseconds, Duration),
        make_overload(_parse_int, str),
        make_overload(lambda value: value.nanoseconds // _NANO, Timestamp),
        make_overload(lambda value: check_int(int(value)), Uint),
    ),
    define(
        "string",
        *(make_overload(to_string, kind) for kind in (str, bool, bytes, float, Duration, int, Timestamp, Uint)),
        *(make_overload(str, kind) for kind in (*Address.__args__, *Network.__args__)),
    ),
    define(
        "timestamp",
        make_overload(return_same, Timestamp),
        make_overload(lambda value: check_timestamp(value * _NANO), int),
        make_overload(parse_timestamp, str),
    ),
    define("type", make_overload(_name_value_type, ANY)),
    define(
        "uint",
        make_overload(return_same, Uint),
        make_overload(_truncate_to_uint, float),
        make_overload(check_uint, int),
        make_overload(_parse_uint, str),
    ),
)
"""Conversions by their names. CEL converts constants while it compiles, so that a failure is a compile error."""

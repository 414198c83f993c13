"""CEL's arithmetic, with its checks of 64 bits and its errors."""

from collections.abc import Callable
from typing import Final

from engine.claims.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    NUMBERS,
    UINT_MAX,
    Duration,
    EvaluationError,
    Timestamp,
    Uint,
    Value,
    ValueSizeError,
)

MAX_SIZE: Final = 1 << 22
"""Characters of a text and elements of a list that an expression may build here: 4 million."""

_INTEGERS: Final = frozenset({int, Uint})
_SUBTRACTED: Final = NUMBERS | {Duration, Timestamp}
_JOINED: Final = frozenset({str, bytes, tuple})
_ADDED: Final = _SUBTRACTED | _JOINED
_SECONDS: Final = 10**9
_EARLIEST, _LATEST = -62135596800 * _SECONDS, 253402300799 * _SECONDS + 999_999_999
_MAX_DURATION: Final = INT_MAX


def check_int(value: int) -> int:
    """Return an int; raise EvaluationError beyond 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def check_uint(value: int) -> Uint:
    """Return an unsigned integer; raise EvaluationError beyond 64 bits."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def check_duration(nanoseconds: int) -> Duration:
    """Return a duration; raise EvaluationError beyond 64 bits."""
    if -_MAX_DURATION - 1 <= nanoseconds <= _MAX_DURATION:
        return Duration(nanoseconds)
    raise EvaluationError("duration overflow")


def check_timestamp(nanoseconds: int) -> Timestamp:
    """Return a moment; raise EvaluationError outside of the years 1 to 9999."""
    if _EARLIEST <= nanoseconds <= _LATEST:
        return Timestamp(nanoseconds)
    raise EvaluationError("timestamp overflow")


def check_size(size: int) -> None:
    """Raise ValueSizeError for a text or list that is larger than this judge builds."""
    if size > MAX_SIZE:
        raise ValueSizeError(f"a value of the expression has more than {MAX_SIZE:,} characters or elements")


def add(left: Value, right: Value) -> Value:
    """Add numbers, times and durations; join texts and lists."""
    match left, right:
        case (Duration(), Duration()):
            return check_duration(left.nanoseconds + right.nanoseconds)
        case (Duration(), Timestamp()) | (Timestamp(), Duration()):
            return check_timestamp(left.nanoseconds + right.nanoseconds)
    kind = _match_types(left, right, _ADDED, "_+_")
    if kind in _JOINED:
        check_size(len(left) + len(right))
    return _check(left + right, kind)


def subtract(left: Value, right: Value) -> Value:
    """Subtract numbers, times and durations."""
    match left, right:
        case (Duration(), Duration()):
            return check_duration(left.nanoseconds - right.nanoseconds)
        case (Timestamp(), Duration()):
            return check_timestamp(left.nanoseconds - right.nanoseconds)
        case (Timestamp(), Timestamp()):
            return check_duration(left.nanoseconds - right.nanoseconds)
    kind = _match_types(left, right, _SUBTRACTED, "_-_")
    return _check(left - right, kind)


def multiply(left: Value, right: Value) -> Value:
    """Multiply numbers."""
    kind = _match_types(left, right, NUMBERS, "_*_")
    return _check(left * right, kind)


def divide(left: Value, right: Value) -> Value:
    """Divide numbers; whole numbers are rounded towards zero."""
    kind = _match_types(left, right, NUMBERS, "_/_")
    if kind is float:
        return _divide_doubles(left, right)
    if not right:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return _check(quotient if (left < 0) == (right < 0) else -quotient, kind)


def take_modulus(left: Value, right: Value) -> Value:
    """Return the remainder of whole numbers, with the sign of the dividend."""
    kind = _match_types(left, right, _INTEGERS, "_%_")
    if not right:
        raise EvaluationError("modulus by zero")
    modulus = abs(left) % abs(right)
    if right == -1 and left == INT_MIN:
        raise EvaluationError("integer overflow")
    return _check(-modulus if left < 0 else modulus, kind)


def negate(value: Value) -> Value:
    """Change the sign of a number."""
    kind = type(value)
    if kind is bool:
        raise EvaluationError(NO_OVERLOAD)
    if kind not in (int, float):
        raise refuse_operand(value, "-_")
    return -value if kind is float else check_int(-value)


def negate_truth(value: Value) -> Value:
    """Negate a truth value."""
    if type(value) is not bool:
        raise EvaluationError(NO_OVERLOAD)
    return not value


def refuse_operand(value: Value, operator: str) -> EvaluationError:
    """Make the error for an operand that an operator does not take; CEL names the operator for some types only."""
    is_terse = type(value) in (str, Duration, Timestamp)
    return EvaluationError(NO_OVERLOAD if is_terse else f"{NO_OVERLOAD}: {operator}")


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or left != left:
        return float("nan")
    return float("inf") if (left > 0) == (str(right)[0] != "-") else float("-inf")


def _match_types(left: Value, right: Value, types: frozenset[type], operator: str) -> type:
    """Return the type of both operands; raise EvaluationError if the operator does not take them."""
    kind = type(left)
    if kind not in types:
        raise refuse_operand(left, operator)
    if kind is not type(right):
        raise EvaluationError(NO_OVERLOAD)
    return kind


def _check(value: Value, kind: type) -> Value:
    if kind is int:
        return check_int(value)
    return check_uint(int(value)) if kind is Uint else value


ARITHMETIC: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": take_modulus,
}
"""Operators of two operands by their names."""

"""Functions of lists, sets and optional values."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from engine.claims.cel.arithmetic import add, check_size, refuse_operand
from engine.claims.cel.functions import ANY, Function, Functions, define, index, make_overload, take_list
from engine.claims.cel.values import (
    ABSENT,
    NO_OVERLOAD,
    ORDERED,
    SIZED,
    Duration,
    EvaluationError,
    MapValue,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    compare,
    is_equal,
    to_map_key,
)

Values = tuple[Value, ...]

_COMPARED: Final = (int, Uint, float, bool, Duration, Timestamp, str, bytes)
_ZEROS: Final[dict[type, Value]] = {int: 0, Uint: Uint(0), float: 0.0, Duration: Duration(0)}


def contains(values: Value, value: Value) -> bool:
    """Return whether a list has an equal element or a map the key."""
    if type(values) is MapValue:
        return values.contains(value)
    if type(values) is not tuple:
        raise EvaluationError(NO_OVERLOAD)
    error = None
    for element in values:
        try:
            if is_equal(value, element):
                return True
        except EvaluationError as cause:
            error = error or cause
    if error:
        raise error
    return False


def measure_size(value: Value) -> int:
    """Count characters, bytes, elements or entries."""
    if type(value) not in SIZED:
        raise refuse_operand(value, "size")
    return len(value)


def is_sorted(values: Values) -> bool:
    """Return whether no element is greater than the next one."""
    return all(_order(left, right) <= 0 for left, right in pairwise(values))


def _order(left: Value, right: Value) -> int:
    """Order two values; Kubernetes takes values that CEL does not order for equal here."""
    try:
        return compare(left, right)
    except EvaluationError:
        return 0


def sum_up(values: Values) -> Value:
    """Add up the elements; 0 for an empty list."""
    total = _ZEROS[type(values[0])] if values else 0
    for value in values:
        total = add(total, value)
    return total


def _pick(name: str, sign: int) -> Callable[[Values], Value]:
    def pick(values: Values) -> Value:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if _order(best, value) == sign:
                best = value
        return best

    return pick


def slice_list(values: Values, start: int, end: int) -> Values:
    """Return the elements from one position up to another."""
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def flatten(values: Values, depth: int = 1) -> Values:
    """Put the elements of nested lists in their place, down to a depth."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Value] = []
    for value in values:
        if type(value) is tuple and depth:
            flat.extend(flatten(value, depth - 1))
        else:
            flat.append(value)
        check_size(len(flat))
    return tuple(flat)


def sort_list(values: Values) -> Values:
    """Sort elements."""
    return sort_by(values, values)


def sort_by(values: Values, keys: Values) -> Values:
    """Sort elements by keys in the same order."""
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if values and type(keys[0]) not in ORDERED:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    order = cmp_to_key(compare)
    positions = sorted(range(len(values)), key=lambda position: order(keys[position]))
    return tuple(values[position] for position in positions)


def deduplicate(values: Values) -> Values:
    """Return the elements without repetitions."""
    unique: list[Value] = []
    for value in values:
        if not _has(unique, value):
            unique.append(value)
    return tuple(unique)


def _has(values: Sequence[Value], value: Value) -> bool:
    try:
        return any(is_equal(value, element) for element in values)
    except EvaluationError:
        return False


def list_range(count: int) -> Values:
    """List the whole numbers below a count."""
    check_size(count)
    return tuple(range(count))


def contains_all(values: Values, others: Values) -> bool:
    """Return whether a list has every element of another one."""
    return all(contains(values, value) for value in others)


def _unwrap(values: Sequence[OptionalValue]) -> Values:
    return tuple(value.value for value in values if value.has_value)


def take_value(optional: OptionalValue) -> Value:
    """Return the value; raise EvaluationError if it is absent."""
    if not optional.has_value:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def wrap(value: Value) -> OptionalValue:
    """Make a value optional."""
    return OptionalValue(value, has_value=True)


def _wrap_unless_zero(value: Value) -> OptionalValue:
    is_zero = value is None or (len(value) == 0 if type(value) in SIZED else value in (0, Duration(0)))
    return ABSENT if is_zero else wrap(value)


def insert(entries: Value, *addition: Value) -> MapValue:
    """Add an entry, or the entries of another map, to a map; raise EvaluationError for a key that is there."""
    pairs = list(addition[0].iterate()) if len(addition) == 1 else [(addition[0], addition[1])]
    merged = MapValue(dict(entries.entries))
    for key, value in pairs:
        if merged.contains(key):
            raise EvaluationError(f"insert failed: key {key} already exists")
        merged.entries[to_map_key(key)] = (key, value)
    return merged


def _includes(values: Value, value: Value) -> bool:
    """Return whether a list has an equal element, or a single value is equal (DRAListTypeAttributes)."""
    if type(values) is not tuple:
        return _has((values,), value)
    limit = 64
    for position, element in enumerate(values):
        if position >= limit:
            raise EvaluationError(f"'includes' function cannot be applied to lists longer than {limit} values")
        if _has((element,), value):
            return True
    return False


def _describe(name: str, implementation: Callable[[Values], Value], types: Sequence[type]) -> Function:
    """Describe a method that has an overload for lists of each of the types."""
    return define(name, *(make_overload(implementation, take_list(kind)) for kind in types))


COLLECTIONS: Final[Functions] = index(
    _describe("isSorted", is_sorted, _COMPARED),
    _describe("min", _pick("min", 1), _COMPARED),
    _describe("max", _pick("max", -1), _COMPARED),
    _describe("sum", sum_up, tuple(_ZEROS)),
    define("slice", make_overload(slice_list, take_list(), int, int)),
    define("flatten", make_overload(flatten, take_list()), make_overload(flatten, take_list(), int)),
    _describe("sort", sort_list, _COMPARED),
    define("@sortByAssociatedKeys", *(make_overload(sort_by, take_list(), take_list(kind)) for kind in _COMPARED)),
    define("distinct", make_overload(deduplicate, take_list())),
    define("reverse", make_overload(lambda values: values[::-1], take_list())),
    define("lists.range", make_overload(list_range, int)),
    define("first", make_overload(lambda values: wrap(values[0]) if values else ABSENT, take_list())),
    define("last", make_overload(lambda values: wrap(values[-1]) if values else ABSENT, take_list())),
    define("sets.contains", make_overload(contains_all, take_list(), take_list())),
    define(
        "sets.equivalent",
        make_overload(
            lambda left, right: contains_all(left, right) and contains_all(right, left), take_list(), take_list()
        ),
    ),
    define(
        "sets.intersects",
        make_overload(lambda left, right: any(_has(right, value) for value in left), take_list(), take_list()),
    ),
    define("optional.of", make_overload(wrap, ANY)),
    define("optional.ofNonZeroValue", make_overload(_wrap_unless_zero, ANY)),
    define("optional.none", make_overload(lambda: ABSENT)),
    define("optional.unwrap", make_overload(_unwrap, take_list(OptionalValue))),
    define("unwrapOpt", make_overload(_unwrap, take_list(OptionalValue))),
    define("value", make_overload(take_value, OptionalValue)),
    define("hasValue", make_overload(lambda optional: optional.has_value, OptionalValue)),
    define("cel.@mapInsert", make_overload(insert, MapValue, MapValue), make_overload(insert, MapValue, ANY, ANY)),
    define("includes", make_overload(_includes, ANY, ANY)),
)
"""Functions and methods by their names."""

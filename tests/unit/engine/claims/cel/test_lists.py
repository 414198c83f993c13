"""Functions of lists, sets, maps and optional values, called by their names.

Results are those that cel-go documents for its extensions of lists, sets and optional values
(https://github.com/google/cel-go/blob/master/ext/README.md) and Kubernetes for its library of lists
(https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-list-library).
"""

import math
import re
from collections.abc import Callable

import pytest

from engine.claims.cel.arithmetic import MAX_SIZE
from engine.claims.cel.lists import COLLECTIONS, contains, insert, measure_size, take_value, wrap
from engine.claims.cel.values import (
    ABSENT,
    Duration,
    EvaluationError,
    MapValue,
    Timestamp,
    Uint,
    Value,
    ValueSizeError,
    is_equal,
    to_map_key,
)
from engine.claims.quantity import parse_quantity

NAN = math.nan


def call(name: str, *arguments: Value) -> Value:
    return COLLECTIONS[name].choose(arguments).implementation(*arguments)


def build_map(*pairs: tuple[Value, Value]) -> MapValue:
    return MapValue({to_map_key(key): (key, value) for key, value in pairs})


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("isSorted", ((),), True),
        ("isSorted", ((1,),), True),
        ("isSorted", ((1, 1, 2),), True),
        ("isSorted", ((1, 3, 2),), False),
        ("isSorted", (("a", "b"),), True),
        ("isSorted", ((True, False),), False),
        # Kubernetes takes values without an order for equal.
        ("isSorted", ((2.0, NAN, 1.0),), True),
        ("min", ((3, 1, 2),), 1),
        ("min", ((1, 2),), 1),
        ("min", ((b"b", b"a"),), b"a"),
        ("max", ((1, 3, 2),), 3),
        ("max", ((3, 1),), 3),
        ("max", ((Timestamp(1), Timestamp(2)),), Timestamp(2)),
        ("max", ((1.0, NAN),), 1.0),
        ("min", ((Duration(2), Duration(1)),), Duration(1)),
        ("sum", ((),), 0),
        ("sum", ((1, 2, 3),), 6),
        ("sum", ((Uint(1), Uint(2)),), Uint(3)),
        ("sum", ((0.5, 0.25),), 0.75),
        ("sum", ((Duration(1), Duration(2)),), Duration(3)),
        ("slice", ((1, 2, 3, 4), 1, 3), (2, 3)),
        ("slice", ((1, 2), 0, 2), (1, 2)),
        ("slice", ((1, 2), 2, 2), ()),
        ("slice", ((1, 2), 0, 0), ()),
        ("flatten", ((1, (2, (3, (4,)))),), (1, 2, (3, (4,)))),
        ("flatten", ((1, (2, (3, (4,)))), 2), (1, 2, 3, (4,))),
        ("flatten", (((1,),), 0), ((1,),)),
        ("flatten", ((),), ()),
        ("sort", ((3, 1, 2),), (1, 2, 3)),
        ("sort", (("b", "a", "b"),), ("a", "b", "b")),
        ("sort", ((),), ()),
        ("sort", ((1,),), (1,)),
        ("@sortByAssociatedKeys", (("a", "b", "c"), (3, 1, 2)), ("b", "c", "a")),
        ("@sortByAssociatedKeys", (("a", "b", "c"), (1, 0, 1)), ("b", "a", "c")),
        ("distinct", ((1, Uint(1), 2, 1.0, "1"),), (1, 2, "1")),
        ("distinct", ((),), ()),
        # Values that Kubernetes does not compare are no repetitions.
        ("distinct", ((1, parse_quantity("1")),), (1, parse_quantity("1"))),
        ("reverse", ((1, 2, 3),), (3, 2, 1)),
        ("lists.range", (3,), (0, 1, 2)),
        ("lists.range", (0,), ()),
        ("first", ((1, 2),), wrap(1)),
        ("first", ((),), ABSENT),
        ("last", ((1, 2),), wrap(2)),
        ("last", ((),), ABSENT),
        ("sets.contains", ((1, 2, 3), (2, 3)), True),
        ("sets.contains", ((1, 2), (2, 3)), False),
        ("sets.contains", ((), ()), True),
        ("sets.equivalent", ((1, 1, 2), (2, 1)), True),
        ("sets.equivalent", ((1,), (1, 2)), False),
        ("sets.equivalent", ((1, 2), (1,)), False),
        ("sets.intersects", ((1, 2), (2, 3)), True),
        ("sets.intersects", ((1,), (2,)), False),
        ("sets.intersects", ((), (1,)), False),
        ("sets.intersects", ((1, parse_quantity("2")), (parse_quantity("2"),)), True),
        ("optional.of", (1,), wrap(1)),
        ("optional.of", (None,), wrap(None)),
        ("optional.none", (), ABSENT),
        ("optional.unwrap", ((wrap(1), ABSENT, wrap(2)),), (1, 2)),
        ("unwrapOpt", ((ABSENT, wrap(0)),), (0,)),
        ("value", (wrap(1),), 1),
        ("hasValue", (wrap(None),), True),
        ("hasValue", (ABSENT,), False),
        ("includes", ((1, 2), 2), True),
        ("includes", ((1, 2), 3), False),
        ("includes", ((parse_quantity("1"), 3), 3), True),
        ("includes", ("a", "a"), True),
        ("includes", ("a", "b"), False),
        ("includes", (parse_quantity("1"), 1), False),
        ("includes", ((*range(64),), 63), True),
        ("includes", ((*range(64),), 64), False),
        ("includes", ((*range(65),), 63), True),
    ],
)
def test_a_function_has_its_documented_result(name: str, arguments: tuple[Value, ...], result: Value) -> None:
    value = call(name, *arguments)
    assert (type(value), value) == (type(result), result)


@pytest.mark.parametrize(
    "value",
    [None, 0, Uint(0), 0.0, False, "", b"", (), build_map(), Duration(0)],
    ids=lambda value: type(value).__name__,
)
def test_a_zero_value_is_absent(value: Value) -> None:
    assert call("optional.ofNonZeroValue", value) == ABSENT


@pytest.mark.parametrize(
    "value",
    [1, -0.5, True, " ", b"0", (0,), build_map(("a", 0)), Duration(1), wrap(0)],
    ids=lambda value: type(value).__name__,
)
def test_any_other_value_is_there(value: Value) -> None:
    assert call("optional.ofNonZeroValue", value) == wrap(value)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("min", ((),), "min called on empty list"),
        ("max", ((),), "max called on empty list"),
        ("slice", ((1,), -1, 1), "cannot slice(-1, 1), negative indexes not supported"),
        ("slice", ((1,), 0, -1), "cannot slice(0, -1), negative indexes not supported"),
        ("slice", ((1, 2), 2, 1), "cannot slice(2, 1), start index must be less than or equal to end index"),
        ("slice", ((1, 2), 0, 3), "cannot slice(0, 3), list is length 2"),
        ("flatten", ((1,), -1), "level must be non-negative"),
        ("sort", ((1, "a"),), "list elements must have the same type"),
        ("sort", ((1, 2.0),), "list elements must have the same type"),
        ("@sortByAssociatedKeys", ((1, 2), (1,)),
         ("@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
          "but got 2 and 1 elements respectively")),
        ("sum", ((9_223_372_036_854_775_807, 1),), "integer overflow"),
        ("sum", ((1, "a"),), "no such overload"),
        ("value", (ABSENT,), "optional.none() dereference"),
        ("sets.contains", ((1,), (parse_quantity("1"),)), "no such overload"),
        ("includes", ((*range(65),), 64), "'includes' function cannot be applied to lists longer than 64 values"),
        # Other types have no overload.
        ("sum", (("a",),), "no such overload: sum(list)"),
        ("sum", ((True,),), "no such overload: sum(list)"),
        ("min", ((None,),), "no such overload: min(list)"),
        ("isSorted", (((1,),),), "no such overload: isSorted(list)"),
        ("sort", (((1,),),), "no such overload: sort(list)"),
        ("slice", ((1,), 0), "no such overload: slice(list, int)"),
        ("slice", ("abc", 0, 1), "no such overload: slice(string, int, int)"),
        ("flatten", ("a",), "no such overload: flatten(string)"),
        ("reverse", ("a",), "no such overload: reverse(string)"),
        ("lists.range", (Uint(1),), "no such overload: lists.range(uint)"),
        ("value", (1,), "no such overload: value(int)"),
        ("unwrapOpt", ((1,),), "no such overload: unwrapOpt(list)"),
        ("optional.none", (1,), "no such overload: optional.none(int)"),
    ],
)  # fmt: skip
def test_a_function_fails_with_the_text_of_kubernetes(name: str, arguments: tuple[Value, ...], error: str) -> None:
    with pytest.raises(EvaluationError, match=f"^{re.escape(error)}$"):
        call(name, *arguments)


@pytest.mark.parametrize(
    "build",
    [
        lambda: call("lists.range", MAX_SIZE + 1),
        lambda: call("flatten", ((0,) * MAX_SIZE, (0,))),
    ],
)
def test_a_list_of_more_than_four_million_elements_is_not_built(build: Callable[[], Value]) -> None:
    with pytest.raises(ValueSizeError, match=r"more than 4,194,304 characters or elements$"):
        build()


@pytest.mark.parametrize(
    ("values", "value", "is_member"),
    [
        ((1, 2), 2.0, True),
        ((1, 2), 3, False),
        ((), 1, False),
        (build_map(("a", 1)), "a", True),
        (build_map(("a", 1)), "b", False),
        # A comparison that fails counts only where no other element is equal.
        ((parse_quantity("1"), 2), 2, True),
        (("a", parse_quantity("1")), "a", True),
    ],
)
def test_a_collection_contains_an_equal_element_or_a_key(values: Value, value: Value, is_member: bool) -> None:
    assert contains(values, value) is is_member


@pytest.mark.parametrize(("values", "value"), [("abc", "a"), (1, 1), ((1, 2), parse_quantity("2"))])
def test_nothing_else_contains_a_value(values: Value, value: Value) -> None:
    with pytest.raises(EvaluationError, match=r"^no such overload$"):
        contains(values, value)


@pytest.mark.parametrize(
    ("value", "size"), [("aä", 2), (b"\xc3\xa4", 2), ((1, 2, 3), 3), ((), 0), (build_map(("a", 1)), 1)]
)
def test_a_size_counts_characters_bytes_elements_or_entries(value: Value, size: int) -> None:
    assert measure_size(value) == size


@pytest.mark.parametrize("value", [1, None, True])
def test_other_values_have_no_size(value: Value) -> None:
    with pytest.raises(EvaluationError, match=r"^no such overload: size"):
        measure_size(value)


def test_an_entry_is_inserted_into_a_copy_of_a_map() -> None:
    entries = build_map(("a", 1))
    assert is_equal(insert(entries, "b", 2), build_map(("a", 1), ("b", 2)))
    assert is_equal(insert(entries, build_map(("b", 2), ("c", 3))), build_map(("a", 1), ("b", 2), ("c", 3)))
    assert is_equal(call("cel.@mapInsert", entries, "b", 2), build_map(("a", 1), ("b", 2)))
    assert len(entries) == 1


def test_an_entry_with_a_key_that_the_map_has_is_not_inserted() -> None:
    with pytest.raises(EvaluationError, match=r"^insert failed: key a already exists$"):
        insert(build_map(("a", 1)), "a", 2)
    with pytest.raises(EvaluationError, match=r"^insert failed: key 1 already exists$"):
        insert(build_map((1.0, 1)), build_map((1, 2)))


def test_an_optional_value_is_taken_out() -> None:
    assert take_value(wrap("a")) == "a"
    assert take_value(wrap(None)) is None

"""Equality, order, sizes and texts of CEL's values.

Equality across numeric types and the order of values are those of CEL's language definition
(https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Equality" and "Ordering"); Kubernetes' types raise an
error where they meet other types.
"""

import math
from dataclasses import replace
from ipaddress import ip_address, ip_interface
from urllib.parse import urlsplit

import pytest

from engine.claims.cel.values import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    EvaluationError,
    MapValue,
    NamedFormat,
    OptionalValue,
    Timestamp,
    TypeValue,
    Uint,
    Url,
    Value,
    compare,
    is_equal,
    measure,
    name_type,
    to_map_key,
    to_text,
    wrap_int,
)
from engine.claims.quantity import parse_quantity
from engine.claims.version import parse_version


def build_map(*pairs: tuple[Value, Value], default: Value | None = None) -> MapValue:
    return MapValue({to_map_key(key): (key, value) for key, value in pairs}, default)


def wrap(value: Value) -> OptionalValue:
    return OptionalValue(value, has_value=True)


def test_whole_numbers_have_64_bits() -> None:
    assert INT_MIN == -9_223_372_036_854_775_808
    assert INT_MAX == 9_223_372_036_854_775_807
    assert UINT_MAX == 18_446_744_073_709_551_615


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [
        (0, 0),
        (-1, -1),
        (9_223_372_036_854_775_807, 9_223_372_036_854_775_807),
        (9_223_372_036_854_775_808, -9_223_372_036_854_775_808),
        (18_446_744_073_709_551_615, -1),
    ],
)
def test_a_number_above_63_bits_wraps_around(value: int, wrapped: int) -> None:
    assert wrap_int(value) == wrapped


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"), (1, "int"), (Uint(1), "uint"), (1.0, "double"), ("a", "string"), (b"a", "bytes"),
        (None, "null_type"), ((), "list"), (build_map(), "map"), (TypeValue("int"), "type"),
        (Duration(1), "google.protobuf.Duration"), (Timestamp(1), "google.protobuf.Timestamp"),
        (ABSENT, "optional_type"), (parse_quantity("1"), "kubernetes.Quantity"),
        (parse_version("1.0.0"), "kubernetes.Semver"), (ip_address("::1"), "net.IP"),
        (ip_address("10.0.0.1"), "net.IP"), (ip_interface("10.0.0.0/8"), "net.CIDR"),
        (ip_interface("::/8"), "net.CIDR"),
        (Url(urlsplit("http://a")), "kubernetes.URL"), (NamedFormat("date"), "kubernetes.NamedFormat"),
        (object(), "dyn"),
    ],
)  # fmt: skip
def test_a_type_has_its_name_of_cel(value: Value, name: str) -> None:
    assert name_type(value) == name


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", 0), ("aä", 2), (b"\xc3\xa4", 2), ((1, 2, 3), 3), (build_map(("a", 1), ("b", 2)), 2), (7, 1), (None, 1),
        (Duration(9), 1), (ABSENT, 1), (wrap("abc"), 3), (wrap(wrap((1, 2))), 2), (wrap(5), 1),
    ],
)  # fmt: skip
def test_a_size_counts_characters_bytes_elements_or_entries(value: Value, size: int) -> None:
    assert measure(value) == size


_EQUAL = [
    ("int and uint", 1, Uint(1)),
    ("int and double", 1, 1.0),
    ("double and uint", 2.0, Uint(2)),
    ("texts", "a", "a"),
    ("bytes", b"a", b"a"),
    ("booleans", True, True),
    ("null", None, None),
    ("types", TypeValue("int"), TypeValue("int")),
    ("durations", Duration(5), Duration(5)),
    ("timestamps", Timestamp(5), Timestamp(5)),
    ("lists of numbers of other types", (1, Uint(2)), (1.0, 2)),
    ("empty lists", (), ()),
    ("maps in another order", build_map(("a", 1), ("b", (2,))), build_map(("b", (2.0,)), ("a", 1))),
    ("maps with numbers as keys", build_map((1, "x")), build_map((Uint(1), "x"))),
    ("absent values", ABSENT, OptionalValue(None, has_value=False)),
    ("optional values", wrap(1), wrap(1.0)),
    ("quantities in other units", parse_quantity("1Gi"), parse_quantity("1024Mi")),
    ("a computed quantity on the left", replace(parse_quantity("2"), is_computed=True), parse_quantity("2")),
    ("versions with different builds", parse_version("1.2.3+a"), parse_version("1.2.3+b")),
    ("addresses", ip_address("10.0.0.1"), ip_address("10.0.0.1")),
    ("networks", ip_interface("10.0.0.0/8"), ip_interface("10.0.0.0/8")),
    ("URLs", Url(urlsplit("http://a/b")), Url(urlsplit("http://a/b"))),
    ("formats", NamedFormat("date"), NamedFormat("date")),
]


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in _EQUAL], ids=[row[0] for row in _EQUAL])
def test_values_are_equal(left: Value, right: Value) -> None:
    assert is_equal(left, right)


_UNEQUAL = [
    ("numbers", 1, 2),
    ("a number and its fraction", 1, 1.5),
    ("NaN and itself", math.nan, math.nan),
    ("a boolean and a number", True, 1),
    ("a number and a boolean", 1, True),
    ("a text and bytes", "a", b"a"),
    ("a text and a number", "1", 1),
    ("null and false", None, False),
    ("a duration and a timestamp", Duration(5), Timestamp(5)),
    ("lists of different lengths", (1, 2), (1,)),
    ("lists of different elements", (1, 2), (1, 3)),
    ("lists whose first elements differ", (0, 2), (1, 2)),
    ("a list and a map", (), build_map()),
    ("a map and a list", build_map(), ()),
    ("a list and a number", (1,), 1),
    ("maps of different keys", build_map(("a", 1)), build_map(("b", 1))),
    ("maps of different values", build_map(("a", 1)), build_map(("a", 2))),
    ("a map and a smaller one", build_map(("a", 1), ("b", 2)), build_map(("a", 1))),
    ("an absent value and null", ABSENT, wrap(None)),
    ("a value and an absent one", wrap(1), ABSENT),
    ("optional values", wrap(1), wrap(2)),
    ("an optional value and its value", wrap(1), 1),
    ("quantities", parse_quantity("1Gi"), parse_quantity("1G")),
    ("versions", parse_version("1.2.3"), parse_version("1.2.3-rc1")),
    ("addresses of both families", ip_address("10.0.0.1"), ip_address("::1")),
    ("networks", ip_interface("10.0.0.0/8"), ip_interface("10.0.0.0/9")),
    ("URLs", Url(urlsplit("http://a/b")), Url(urlsplit("http://a/c"))),
    ("a text and a quantity", "1", parse_quantity("1")),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in _UNEQUAL], ids=[row[0] for row in _UNEQUAL])
def test_values_are_not_equal(left: Value, right: Value) -> None:
    assert not is_equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (parse_quantity("1"), 1),
        (parse_quantity("1"), "1"),
        (parse_quantity("1"), parse_version("1.0.0")),
        (parse_quantity("2"), replace(parse_quantity("2"), is_computed=True)),
        (parse_version("1.0.0"), "1.0.0"),
        (ip_address("10.0.0.1"), "10.0.0.1"),
        (ip_address("::1"), ip_interface("::1/128")),
        (ip_interface("10.0.0.1/32"), ip_address("10.0.0.1")),
        (ip_interface("::/8"), "::/8"),
        (Url(urlsplit("http://a")), "http://a"),
        (NamedFormat("date"), "date"),
        ((parse_quantity("1"),), (1,)),
        (wrap(parse_quantity("1")), wrap(1)),
        (build_map(("a", parse_quantity("1"))), build_map(("a", 1))),
    ],
)
def test_a_type_of_kubernetes_is_not_compared_with_another_type(left: Value, right: Value) -> None:
    with pytest.raises(EvaluationError, match=r"^no such overload$"):
        is_equal(left, right)


_ORDERED = [
    (1, 2),
    (1, 1.5),
    (Uint(1), 2),
    (-1, Uint(0)),
    (1.5, Uint(2)),
    (-math.inf, 0),
    (False, True),
    ("a", "b"),
    ("a", "aa"),
    ("Z", "a"),
    ("z", "ä"),
    ("\uffff", "\U0001f600"),
    ("a", "\ud800"),
    (b"a", b"b"),
    (Duration(-1), Duration(1)),
    (Timestamp(1), Timestamp(2)),
]


@pytest.mark.parametrize(("smaller", "greater"), _ORDERED)
def test_values_of_one_type_and_all_numbers_have_an_order(smaller: Value, greater: Value) -> None:
    assert compare(smaller, greater) == -1
    assert compare(greater, smaller) == 1
    assert compare(smaller, smaller) == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, "1"), ("1", 1), (True, 1), ("a", b"a"), (Duration(1), Timestamp(1)), (None, None), ((1,), (2,)),
        (build_map(), build_map()), (TypeValue("int"), TypeValue("int")), (ABSENT, ABSENT),
        (parse_quantity("1"), parse_quantity("2")), (ip_address("10.0.0.1"), ip_address("10.0.0.2")),
    ],
)  # fmt: skip
def test_other_values_have_no_order(left: Value, right: Value) -> None:
    with pytest.raises(EvaluationError, match=r"^no such overload$"):
        compare(left, right)


@pytest.mark.parametrize(("left", "right"), [(math.nan, 1), (1, math.nan), (math.nan, math.nan)])
def test_nan_has_no_order(left: Value, right: Value) -> None:
    with pytest.raises(EvaluationError, match=r"^NaN values cannot be ordered$"):
        compare(left, right)


@pytest.mark.parametrize("key", [1, Uint(1), 1.0])
def test_a_key_of_a_map_is_the_same_as_a_number_of_any_type(key: Value) -> None:
    numbers = build_map((1, "one"))
    assert numbers.contains(key)
    assert numbers.get(key) == wrap("one")


@pytest.mark.parametrize("key", [True, "1", 2, 1.5, b"1", None, math.inf, math.nan])
def test_any_other_value_is_another_key(key: Value) -> None:
    numbers = build_map((1, "one"))
    assert not numbers.contains(key)
    assert numbers.get(key) == ABSENT


def test_booleans_are_keys_apart_from_each_other() -> None:
    answers = build_map((True, "yes"), (False, "no"))
    assert (answers.get(True).value, answers.get(False).value) == ("yes", "no")
    assert not answers.contains(1)


def test_a_default_stands_for_every_missing_key_and_is_no_entry() -> None:
    domains = build_map(("a", 1), default=0)
    assert (domains.get("a"), domains.get("b")) == (wrap(1), wrap(0))
    assert not domains.contains("b")
    assert len(domains) == 1


def test_entries_follow_in_their_order_with_the_key_as_it_was_written() -> None:
    entries = list(build_map((Uint(2), "b"), (1.0, "a")).iterate())
    assert entries == [(2, "b"), (1, "a")]
    assert [type(key) for key, _ in entries] == [Uint, float]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ("a b", '"a b"'),
        (-3, "-3"),
        (Uint(3), "3"),
        (1.50, "1.5"),
        (2.0, "2"),
        (("a", 1, ()), '["a", 1, []]'),
        (build_map(("a", 1), (2, True)), '{"a": 1, 2: true}'),
        (Duration(1_500_000_000), "1.5s"),
        (Duration(3_600_000_000_000), "3600s"),
        (Timestamp(2_500_000_000), "2.5"),
        (wrap("a"), '"a"'),
        (ABSENT, "absent"),
        (TypeValue("int"), "int"),
        (NamedFormat("date"), "date"),
        (Url(urlsplit("https://a.b/c?d=e#f")), "https://a.b/c?d=e#f"),
        (parse_version("1.2.3-rc1"), "1.2.3-rc1"),
        (parse_quantity("80Gi"), "80Gi"),
        (ip_address("10.0.0.1"), "10.0.0.1"),
        (ip_interface("10.0.0.0/8"), "10.0.0.0/8"),
    ],
)
def test_a_value_is_printed_as_an_expression_writes_it(value: Value, text: str) -> None:
    assert to_text(value) == text

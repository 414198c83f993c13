"""Messages of checked and parsed expressions, written here by the field numbers of cel-spec.

https://github.com/google/cel-spec/tree/master/proto/cel/expr (checked.proto and syntax.proto), in the wire format of
https://protobuf.dev/programming-guides/encoding/.
"""

import struct
from typing import Final

import pytest

from engine.claims.cel.syntax import (
    Call,
    Comprehension,
    Constant,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    UintConstant,
)
from engine.claims.cel.wire import decode_checked, decode_parsed

DYN: Final = 0
BOOL, INT, UINT, DOUBLE, STRING, BYTES = range(1, 7)


def write_varint(value: int) -> bytes:
    value %= 2**64
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def write(number: int, value: float | str | bytes) -> bytes:
    """Write a field: integers as varints, doubles in 64 bits, anything else with its length."""
    match value:
        case int():
            return write_varint(number << 3) + write_varint(value)
        case float():
            return write_varint(number << 3 | 1) + struct.pack("<d", value)
        case str():
            value = value.encode()
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


def write_node(identity: int, number: int, value: bytes) -> bytes:
    return write(2, identity) + write(number, value)


def write_name(identity: int, name: str) -> bytes:
    return write_node(identity, 4, write(1, name))


def write_text(identity: int, text: str) -> bytes:
    return write_node(identity, 3, write(6, text))


def wrap(message: bytes) -> bytes:
    return write(1, "type.googleapis.com/cel.expr.CheckedExpr") + write(2, message)


def decode_node(message: bytes) -> Node:
    checked = decode_checked(wrap(write(4, message)), "")
    assert decode_parsed(wrap(write(2, message)), "").root == checked.root
    return checked.root


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (write(1, 0), None),
        (write(2, 1), True),
        (write(2, 0), False),
        (write(3, 0), 0),
        (write(3, 127), 127),
        (write(3, 128), 128),
        (write(3, 300), 300),
        (write(3, 2**63 - 1), 9_223_372_036_854_775_807),
        (write(3, -1), -1),
        (write(3, -(2**63)), -9_223_372_036_854_775_808),
        (write(4, 2**64 - 1), UintConstant(18_446_744_073_709_551_615)),
        (write(5, 1.5), 1.5),
        (write(5, -0.25), -0.25),
        (write(5, 0.5) + write(5, 1.5), 1.5),
        (write(6, "aä"), "aä"),
        (write(6, "a" * 200), "a" * 200),
        (write(6, ""), ""),
        (write(7, b"\xff\x00"), b"\xff\x00"),
        (b"", None),
    ],
)
def test_a_constant_has_the_value_of_its_kind(message: bytes, value: Constant) -> None:
    node = decode_node(write_node(7, 3, message))
    assert node == Literal(7, value)
    assert isinstance(node, Literal)
    assert type(node.value) is type(value)


def test_a_node_without_a_kind_is_null() -> None:
    assert decode_node(write(2, 5)) == Literal(5, None)
    assert decode_node(b"") == Literal(0, None)


def test_of_a_field_that_is_written_twice_the_last_counts() -> None:
    assert decode_node(write(2, 1) + write(2, 9) + write(4, write(1, "a") + write(1, "b"))) == Identifier(9, "b")


@pytest.mark.parametrize(
    ("message", "node"),
    [
        (write_name(300, "device"), Identifier(300, "device")),
        (write_node(2, 5, write(1, write_name(1, "a")) + write(2, "b")), Select(2, Identifier(1, "a"), "b", False)),
        (
            write_node(2, 5, write(1, write_name(1, "a")) + write(2, "b") + write(3, 1)),
            Select(2, Identifier(1, "a"), "b", True),
        ),
        (write_node(1, 6, write(2, "f")), Call(1, "f", None, ())),
        (
            write_node(1, 6, write(2, "f") + write(3, write_name(2, "a")) + write(3, write_text(3, "b"))),
            Call(1, "f", None, (Identifier(2, "a"), Literal(3, "b"))),
        ),
        (
            write_node(1, 6, write(1, write_name(2, "a")) + write(2, "size")),
            Call(1, "size", Identifier(2, "a"), ()),
        ),
        (write_node(1, 7, b""), ListLiteral(1, (), frozenset())),
        (
            write_node(1, 7, write(1, write_text(2, "a")) + write(1, write_text(3, "b"))),
            ListLiteral(1, (Literal(2, "a"), Literal(3, "b")), frozenset()),
        ),
        # Positions of optional elements: packed into one field, or each in one of its own.
        (
            write_node(1, 7, write(1, write_text(2, "a")) + write(2, b"\x00\xac\x02\x05")),
            ListLiteral(1, (Literal(2, "a"),), frozenset({0, 300, 5})),
        ),
        (
            write_node(1, 7, write(1, write_text(2, "a")) + write(2, 0) + write(2, 3)),
            ListLiteral(1, (Literal(2, "a"),), frozenset({0, 3})),
        ),
        (write_node(1, 8, b""), MapLiteral(1, ())),
        (
            write_node(
                1,
                8,
                write(2, write(1, 2) + write(3, write_text(3, "a")) + write(4, write_text(4, "b")))
                + write(2, write(1, 5) + write(3, write_text(6, "c")) + write(4, write_text(7, "d")) + write(5, 1)),
            ),
            MapLiteral(
                1,
                (
                    MapEntry(2, Literal(3, "a"), Literal(4, "b"), False),
                    MapEntry(5, Literal(6, "c"), Literal(7, "d"), True),
                ),
            ),
        ),
        (write_node(1, 8, write(1, "google.protobuf.Empty")), StructLiteral(1, "google.protobuf.Empty")),
        (
            write_node(
                1,
                9,
                b"".join(
                    [
                        *(write(1, "k"), write(8, "v"), write(3, "@result")),
                        *(write(number, write_name(number, f"n{number}")) for number in (2, 4, 5, 6, 7)),
                    ]
                ),
            ),
            Comprehension(
                1,
                variable="k",
                second_variable="v",
                range=Identifier(2, "n2"),
                accumulator="@result",
                start=Identifier(4, "n4"),
                condition=Identifier(5, "n5"),
                step=Identifier(6, "n6"),
                result=Identifier(7, "n7"),
            ),
        ),
    ],
)
def test_a_node_has_its_parts(message: bytes, node: Node) -> None:
    assert decode_node(message) == node


def write_entry(key: int, value: int | bytes) -> bytes:
    return write(1, key) + write(2, value)


def test_a_checked_expression_has_positions_types_and_macros() -> None:
    source = b"".join(
        [
            *(write(1, "cel1"), write(2, "<input>"), write(3, b"\x0a")),
            *(write(4, write_entry(1, 300)), write(4, write_entry(2, -1)), write(4, write(1, 3))),
            write(5, write_entry(1, write_node(0, 6, write(2, "exists")))),
        ]
    )
    types = write(3, write_entry(1, write(3, BOOL))) + write(3, write_entry(2, write(3, INT)))
    checked = decode_checked(wrap(types + write(4, write_name(1, "a")) + write(5, source)), "the text")
    assert checked.text == "the text"
    assert checked.root == Identifier(1, "a")
    assert checked.types == {1: "bool", 2: "int"}
    assert checked.result_type == "bool"
    # An entry without a value has the default.
    assert checked.positions == {1: 300, 2: -1, 3: 0}
    assert checked.macros == {1: Call(0, "exists", None, ())}


def test_a_macro_without_a_value_is_null() -> None:
    source = write(5, write(1, 4))
    assert decode_checked(wrap(write(5, source)), "").macros == {4: Literal(0, None)}


def test_a_parsed_expression_has_positions_only() -> None:
    source = write(4, write_entry(1, 5)) + write(5, write_entry(1, write_name(2, "b")))
    parsed = decode_parsed(wrap(write(2, write_name(1, "a")) + write(3, source)), "the text")
    assert (parsed.text, parsed.root) == ("the text", Identifier(1, "a"))
    assert (parsed.types, parsed.positions, parsed.macros) == ({}, {1: 5}, {})


def write_abstract(name: str, *parameters: bytes) -> bytes:
    return write(14, write(1, name) + b"".join(write(2, parameter) for parameter in parameters))


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (write(1, b""), "dyn"),
        (b"", "dyn"),
        (write(2, 0), "null_type"),
        (write(3, BOOL), "bool"),
        (write(3, INT), "int"),
        (write(3, UINT), "uint"),
        (write(3, DOUBLE), "double"),
        (write(3, STRING), "string"),
        (write(3, BYTES), "bytes"),
        (write(4, INT), "wrapper(int)"),
        (write(5, 1), "any"),
        (write(5, 2), "timestamp"),
        (write(5, 3), "duration"),
        (write(6, write(1, write(3, INT))), "list(int)"),
        (write(6, b""), "list(dyn)"),
        (write(7, write(1, write(3, STRING)) + write(2, write(1, b""))), "map(string, dyn)"),
        (write(7, write(1, write(3, STRING)) + write(2, write(6, write(1, write(3, INT))))), "map(string, list(int))"),
        (write(7, b""), "map(dyn, dyn)"),
        (write(9, "kubernetes.Quantity"), "kubernetes.Quantity"),
        (write(11, write(3, INT)), "type(int)"),
        (write(11, b""), "type"),
        (write(12, b""), "error"),
        (write_abstract("optional_type", write(3, INT)), "optional_type(int)"),
        (write_abstract("pair", write(3, INT), write(3, STRING)), "pair(int, string)"),
        (write_abstract("net.IP"), "net.IP"),
    ],
)
def test_a_type_has_the_name_of_cels_messages(message: bytes, name: str) -> None:
    checked = decode_checked(wrap(write(3, write_entry(1, message)) + write(4, write_name(1, "a"))), "")
    assert checked.types == {1: name}


def test_a_node_without_a_type_is_dynamic() -> None:
    entry = write(3, write(1, 1))
    assert decode_checked(wrap(entry + write(4, write_name(1, "a"))), "").types == {1: "dyn"}
    assert decode_checked(wrap(write(4, write_name(1, "a"))), "").result_type == "dyn"

"""The protobuf message ``cel.expr.CheckedExpr``, read into a syntax tree.

Field numbers: https://github.com/google/cel-spec/tree/master/proto/cel/expr (checked.proto and syntax.proto).
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

from engine.claims.cel.syntax import (
    Call,
    CheckedExpression,
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

Fields = dict[int, list[Any]]

_PRIMITIVES: Final = ("dyn", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN: Final = ("", "any", "timestamp", "duration")


def decode_checked(message: bytes, text: str) -> CheckedExpression:
    """Decode a ``google.protobuf.Any`` that holds a checked expression."""
    checked = _read(_take_last(_read(message), 2, b""))
    source = _read(_take_last(checked, 5, b""))
    return CheckedExpression(
        text,
        _read_node(_take_last(checked, 4, b"")),
        {key: _name_type(value) for key, value in _iterate_entries(checked, 3)},
        {key: _to_signed(value) for key, value in _iterate_entries(source, 4)},
        {key: _read_node(value) for key, value in _iterate_entries(source, 5)},
    )


def decode_parsed(message: bytes, text: str) -> CheckedExpression:
    """Decode a ``google.protobuf.Any`` that holds an expression which was parsed and not checked."""
    parsed = _read(_take_last(_read(message), 2, b""))
    source = _read(_take_last(parsed, 3, b""))
    positions = {key: _to_signed(value) for key, value in _iterate_entries(source, 4)}
    return CheckedExpression(text, _read_node(_take_last(parsed, 2, b"")), {}, positions, {})


def _read(message: bytes) -> Fields:
    """Read the fields of a message by their numbers; packed and nested values stay bytes."""
    fields: Fields = {}
    for number, value in _iterate(message):
        fields.setdefault(number, []).append(value)
    return fields


def _iterate(message: bytes) -> Iterator[tuple[int, Any]]:
    position, end = 0, len(message)
    while position < end:
        tag, position = _read_varint(message, position)
        kind = tag & 7
        if kind == 0:
            value, position = _read_varint(message, position)
            yield tag >> 3, value
        elif kind == 1:
            yield tag >> 3, message[position : position + 8]
            position += 8
        else:
            length, position = _read_varint(message, position)
            yield tag >> 3, message[position : position + length]
            position += length


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _take_last(fields: Fields, number: int, default: Any) -> Any:
    return fields[number][-1] if number in fields else default


def _iterate_entries(fields: Fields, number: int) -> Iterator[tuple[int, Any]]:
    """Yield the entries of a map; a missing value is a default, which is 0 or an empty message."""
    for message in fields.get(number, ()):
        entry = _read(message)
        yield _take_last(entry, 1, 0), entry[2][-1] if 2 in entry else 0


def _to_signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _read_text(fields: Fields, number: int) -> str:
    return str(_take_last(fields, number, b""), "utf-8")


def _read_node(message: bytes | int) -> Node:
    if isinstance(message, int):
        return Literal(0, None)
    fields = _read(message)
    identity: int = _take_last(fields, 2, 0)
    for number, decode in _DECODERS.items():
        if number in fields:
            node: Node = decode(identity, _read(fields[number][-1]))
            return node
    return Literal(identity, None)


def _read_literal(identity: int, fields: Fields) -> Node:
    return Literal(identity, _read_constant(fields))


def _read_constant(fields: Fields) -> Constant:
    for number, values in fields.items():
        value = values[-1]
        match number:
            case 2:
                return bool(value)
            case 3:
                return _to_signed(value)
            case 4:
                return UintConstant(value)
            case 5:
                return float(struct.unpack("<d", value)[0])
            case 6:
                return str(value, "utf-8")
            case 7:
                return bytes(value)
    return None


def _read_identifier(identity: int, fields: Fields) -> Node:
    return Identifier(identity, _read_text(fields, 1))


def _read_select(identity: int, fields: Fields) -> Node:
    return Select(
        identity, _read_node(_take_last(fields, 1, b"")), _read_text(fields, 2), bool(_take_last(fields, 3, 0))
    )


def _read_call(identity: int, fields: Fields) -> Node:
    target = _read_node(fields[1][-1]) if 1 in fields else None
    return Call(identity, _read_text(fields, 2), target, tuple(_read_node(value) for value in fields.get(3, ())))


def _read_list(identity: int, fields: Fields) -> Node:
    packed = b"".join(value for value in fields.get(2, ()) if isinstance(value, bytes))
    positions: list[int] = [value for value in fields.get(2, ()) if isinstance(value, int)]
    position = 0
    while position < len(packed):
        value, position = _read_varint(packed, position)
        positions.append(value)
    return ListLiteral(identity, tuple(_read_node(value) for value in fields.get(1, ())), frozenset(positions))


def _read_struct(identity: int, fields: Fields) -> Node:
    if name := _read_text(fields, 1):
        return StructLiteral(identity, name)
    return MapLiteral(identity, tuple(_read_entry(_read(message)) for message in fields.get(2, ())))


def _read_entry(fields: Fields) -> MapEntry:
    key, value = _read_node(_take_last(fields, 3, b"")), _read_node(_take_last(fields, 4, b""))
    return MapEntry(_take_last(fields, 1, 0), key, value, bool(_take_last(fields, 5, 0)))


def _read_comprehension(identity: int, fields: Fields) -> Node:
    parts = [_read_node(_take_last(fields, number, b"")) for number in (2, 4, 5, 6, 7)]
    names = [_read_text(fields, number) for number in (1, 8, 3)]
    return Comprehension(identity, names[0], names[1], parts[0], names[2], *parts[1:])


_DECODERS: Final[dict[int, Any]] = {
    3: _read_literal,
    4: _read_identifier,
    5: _read_select,
    6: _read_call,
    7: _read_list,
    8: _read_struct,
    9: _read_comprehension,
}


def _name_type(message: bytes | int) -> str:
    """Name a type as CEL's messages do: ``list(int)``, ``map(string, dyn)``, ``kubernetes.Quantity``."""
    if isinstance(message, int):
        return "dyn"
    for number, value in _iterate(message):
        match number:
            case 2:
                return "null_type"
            case 3:
                return _PRIMITIVES[value]
            case 4:
                return f"wrapper({_PRIMITIVES[value]})"
            case 5:
                return _WELL_KNOWN[value]
            case 6:
                return f"list({_name_type(_take_last(_read(value), 1, 0))})"
            case 7:
                fields = _read(value)
                return f"map({_name_type(_take_last(fields, 1, 0))}, {_name_type(_take_last(fields, 2, 0))})"
            case 9:
                return str(value, "utf-8")
            case 11:
                return f"type({_name_type(value)})" if value else "type"
            case 12:
                return "error"
            case 14:
                fields = _read(value)
                parameters = ", ".join(_name_type(parameter) for parameter in fields.get(2, ()))
                return f"{_read_text(fields, 1)}({parameters})" if parameters else _read_text(fields, 1)
    return "dyn"

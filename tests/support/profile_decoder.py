"""Reads pprof's files by the field numbers of profile.proto, with no code of ours or of protobuf."""

import gzip
from collections.abc import Iterator


def parse_fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """Parse number and value of each field of a protobuf message: numbers as they are, all else as bytes."""
    parsed: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(message):
        tag, position = parse_varint(message, position)
        value, position = parse_varint(message, position)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            parsed.append((tag >> 3, message[position : position + value]))
            position += value
        else:
            parsed.append((tag >> 3, value))
    assert position == len(message)
    return parsed


def parse_varint(message: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[position]
        number, shift, position = number | (byte & 127) << shift, shift + 7, position + 1
        if byte < 128:
            return number, position


def parse_packed(content: bytes) -> list[int]:
    numbers, position = [], 0
    while position < len(content):
        number, position = parse_varint(content, position)
        numbers.append(number)
    return numbers


class DecodedProfile:
    """A profile read by profile.proto's field numbers."""

    def __init__(self, content: bytes) -> None:
        self._fields = parse_fields(gzip.decompress(content))
        self.strings = [text.decode() for text in self.get_all(6)]
        self.functions = {number: self.strings[name] for number, name in self._iterate_pairs(5, 1, 2)}
        self.lines = {}
        for location in self.get_all(4):
            values = dict(parse_fields(location))
            line = values[4]
            assert isinstance(line, bytes)
            where = dict(parse_fields(line))
            self.lines[values[1]] = (self.functions[where[1]], where[2])

    def get_all(self, number: int) -> list[bytes]:
        return [value for field_number, value in self._fields if field_number == number and isinstance(value, bytes)]

    def get_only(self, number: int) -> int:
        (value,) = (value for field_number, value in self._fields if field_number == number)
        assert isinstance(value, int)
        return value

    def _iterate_pairs(self, field: int, first: int, second: int) -> Iterator[tuple[int | bytes, int]]:
        for message in self.get_all(field):
            values = dict(parse_fields(message))
            value = values[second]
            assert isinstance(value, int)
            yield values[first], value

    @property
    def types(self) -> list[tuple[str, str]]:
        return [(self.strings[int(what)], self.strings[unit]) for what, unit in self._iterate_pairs(1, 1, 2)]

    @property
    def samples(self) -> list[tuple[list[tuple[str, int | bytes]], list[int]]]:
        samples = [dict(parse_fields(message)) for message in self.get_all(2)]
        return [
            ([self.lines[position] for position in parse_packed(bytes(sample[1]))], parse_packed(bytes(sample[2])))
            for sample in samples
        ]

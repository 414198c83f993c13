"""Reads pprof's files by the field numbers of profile.proto, with no code of ours or of protobuf."""

import gzip
from collections.abc import Iterator


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """(number, value) of each field of a protobuf message: numbers as they are, the rest as bytes."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value, at = varint(message, at)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            found.append((tag >> 3, message[at : at + value]))
            at += value
        else:
            found.append((tag >> 3, value))
    assert at == len(message)
    return found


def varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at


def packed(content: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(content):
        number, at = varint(content, at)
        numbers.append(number)
    return numbers


class DecodedProfile:
    """A profile read by profile.proto's field numbers."""

    def __init__(self, content: bytes) -> None:
        self._fields = fields(gzip.decompress(content))
        self.strings = [text.decode() for text in self.all(6)]
        self.functions = {number: self.strings[name] for number, name in self._pairs(5, 1, 2)}
        self.lines = {}
        for location in self.all(4):
            values = dict(fields(location))
            line = values[4]
            assert isinstance(line, bytes)
            where = dict(fields(line))
            self.lines[values[1]] = (self.functions[where[1]], where[2])

    def all(self, number: int) -> list[bytes]:
        return [value for found, value in self._fields if found == number and isinstance(value, bytes)]

    def one(self, number: int) -> int:
        (value,) = (value for found, value in self._fields if found == number)
        assert isinstance(value, int)
        return value

    def _pairs(self, field: int, first: int, second: int) -> Iterator[tuple[int | bytes, int]]:
        for message in self.all(field):
            values = dict(fields(message))
            value = values[second]
            assert isinstance(value, int)
            yield values[first], value

    @property
    def types(self) -> list[tuple[str, str]]:
        return [(self.strings[int(what)], self.strings[unit]) for what, unit in self._pairs(1, 1, 2)]

    @property
    def samples(self) -> list[tuple[list[tuple[str, int | bytes]], list[int]]]:
        samples = [dict(fields(message)) for message in self.all(2)]
        return [([self.lines[at] for at in packed(bytes(sample[1]))], packed(bytes(sample[2]))) for sample in samples]

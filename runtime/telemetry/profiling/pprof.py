"""Samples as a pprof file: gzip around the protobuf message `perftools.profiles.Profile`. Pure.

The message is small and its numbers never change (https://github.com/google/pprof/blob/main/proto/profile.proto), so
it is written by hand, without a compiler and without a library.
"""

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_VARINT: Final = 0
_BYTES: Final = 2


class Frame(NamedTuple):
    """A place in a program. `line` 0: not known."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """`stack`: the innermost frame first. `values`: one per value type. `labels`: words to select samples by."""

    stack: tuple[Frame, ...]
    values: tuple[int, ...]
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """`types`: (what, unit) of each value, the last one shown first. `period`: one sample stands for so much of it."""

    types: tuple[tuple[str, str], ...]
    samples: Sequence[Sample]
    time_ns: int
    duration_ns: int = 0
    period: int = 0
    period_type: tuple[str, str] = ("", "")
    comments: tuple[str, ...] = ()


def encoded(profile: Profile) -> bytes:
    return gzip.compress(_Writer().message(profile), compresslevel=5, mtime=0)


@dataclass(slots=True)
class _Writer:
    """Numbers strings, functions and locations in the order in which they are first met."""

    # pprof wants the empty string as number 0.
    strings: dict[str, int] = field(default_factory=lambda: {"": 0})
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    locations: dict[Frame, int] = field(default_factory=dict)

    def message(self, profile: Profile) -> bytes:
        parts = [_sub(1, self._value_type(value_type)) for value_type in profile.types]
        parts += [_sub(2, self._sample(sample)) for sample in profile.samples]
        parts += [_sub(4, self._location(frame, number)) for frame, number in list(self.locations.items())]
        parts += [_sub(5, self._function(function, number)) for function, number in list(self.functions.items())]
        parts += [_number(9, profile.time_ns), _number(10, profile.duration_ns)]
        parts += [_sub(11, self._value_type(profile.period_type)), _number(12, profile.period)]
        parts += [_number(13, self._string(comment)) for comment in profile.comments]
        parts.append(_number(14, self._string(profile.types[-1][0])))
        # Last, when every string has its number.
        parts += [_sub(6, text.encode(errors="replace")) for text in self.strings]
        return b"".join(parts)

    def _value_type(self, value_type: tuple[str, str]) -> bytes:
        return _number(1, self._string(value_type[0])) + _number(2, self._string(value_type[1]))

    def _sample(self, sample: Sample) -> bytes:
        # From 1: pprof takes id 0 for none.
        where = [self.locations.setdefault(frame, len(self.locations) + 1) for frame in sample.stack]
        labels = [
            _sub(3, _number(1, self._string(key)) + _number(2, self._string(text))) for key, text in sample.labels
        ]
        return _packed(1, where) + _packed(2, sample.values) + b"".join(labels)

    def _location(self, frame: Frame, number: int) -> bytes:
        function = self.functions.setdefault((frame.function, frame.file), len(self.functions) + 1)
        return _number(1, number) + _sub(4, _number(1, function) + _number(2, frame.line))

    def _function(self, function: tuple[str, str], number: int) -> bytes:
        name, file = map(self._string, function)
        return _number(1, number) + _number(2, name) + _number(3, name) + _number(4, file)

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))


def _varint(number: int) -> bytes:
    number &= 2**64 - 1  # int64 is written as its two's complement
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _number(tag: int, number: int) -> bytes:
    return _varint(tag << 3 | _VARINT) + _varint(number)


def _sub(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | _BYTES) + _varint(len(content)) + content


def _packed(tag: int, numbers: Iterable[int]) -> bytes:
    return _sub(tag, b"".join(map(_varint, numbers)))

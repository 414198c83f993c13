"""How records lie in a spool file: framed, checksummed, and found again behind damage.

A frame is a head (magic, length of the body, CRC-32 of everything behind it, kind, time, rows) and a body (topic, key,
headers, value of one Kafka record). The CRC begins at the number of the file instead of 0. CRC-32 maps different
beginnings to different ends, so the very bytes of a frame are no frame in a file with another number: that is what
lets a file be written over. `END` stands behind the last frame where older bytes follow.

Pure: bytes in, entries out. Nothing here trusts a byte that it has not checked.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from schemas.codec.records import Record

MAGIC: Final = b"\xffSL\x02"
END: Final = bytes(len(MAGIC))
"""No frame follows, whatever does."""
MAX_BODY: Final = 32 * 1024 * 1024
"""A longer body is damage: no record of the contract comes near it."""

_HEAD: Final = struct.Struct("<4sII")
_CHECKED: Final = struct.Struct("<BqI")
_LENGTHS: Final = struct.Struct("<HIH")
_HEADER: Final = struct.Struct("<HI")
HEAD_BYTES: Final = _HEAD.size + _CHECKED.size


class EntryKind(IntEnum):
    """What may be given up when there is no room."""

    DETAIL = 1
    """Device rows of an attempt: the first to go."""
    VERDICT = 2
    """Everything else: the last to go."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One Kafka record that waits in the spool.

    written: microseconds since 1970. rows: device verdicts in a DETAIL record, else 0.
    """

    kind: EntryKind
    topic: str
    record: Record
    written_at_us: int
    rows: int = 0

    @property
    def ce_id(self) -> str:
        """The CloudEvents id."""
        return next((value.decode() for name, value in self.record.headers if name == "ce_id"), "")


def frame(entry: Entry, number: int) -> tuple[bytes, bytes]:
    """The frame in two parts, of which the second is the record's value itself, not copied. `number`: of the file."""
    record = entry.record
    topic = entry.topic.encode()
    lengths = _LENGTHS.pack(len(topic), len(record.key), len(record.headers))
    headers = b"".join(_header(name.encode(), value) for name, value in record.headers)
    checked = b"".join(
        (_CHECKED.pack(entry.kind, entry.written_at_us, entry.rows), lengths, topic, record.key, headers)
    )
    crc = zlib.crc32(record.value, zlib.crc32(checked, _seed(number)))
    length = len(checked) - _CHECKED.size + len(record.value)
    return _HEAD.pack(MAGIC, length, crc) + checked, record.value


def _seed(number: int) -> int:
    return number & 0xFFFFFFFF


def _header(name: bytes, value: bytes) -> bytes:
    return _HEADER.pack(len(name), len(value)) + name + value


def frames(entries: Iterable[Entry], number: int) -> list[bytes]:
    """The frames of all entries for the file with a number, as parts to be written one after the other."""
    return [part for entry in entries for part in frame(entry, number)]


def size_of(entries: Iterable[Entry]) -> int:
    """Bytes that the entries take in a file."""
    return sum(map(_size, entries))


def _size(entry: Entry) -> int:
    record = entry.record
    headers = sum(_HEADER.size + len(name.encode()) + len(value) for name, value in record.headers)
    return HEAD_BYTES + _LENGTHS.size + len(entry.topic.encode()) + len(record.key) + headers + len(record.value)


@dataclass(slots=True)
class Scan:
    """What a run of bytes holds. `found`: entries with the offset behind each. `consumed`: bytes that are done with.

    `wanted`: at least as many bytes are needed to get further, 0 when all were read. `damaged`: gaps between entries.
    """

    found: list[tuple[Entry, int]] = field(default_factory=list)
    consumed: int = 0
    wanted: int = 0
    damaged: int = 0


def scan(data: bytes, number: int, *, is_end: bool) -> Scan:
    """Every intact entry of `data`, which starts at a frame; what is damaged is skipped.

    `number`: of the file. `is_end`: no byte follows, so a frame that is cut off is damage; otherwise it waits for more
    bytes.
    """
    said, place, lost = Scan(), 0, False
    while place < len(data):
        read = _read(data, place, number)
        if isinstance(read, int) and read and not is_end:
            said.wanted = read
            break
        if isinstance(read, int):
            said.damaged += not lost
            lost = True
            place = _next_magic(data, place + 1, is_end=is_end)
        else:
            entry, place = read
            lost = False
            said.found.append((entry, place))
    said.consumed = min(place, len(data))
    return said


def _next_magic(data: bytes, start: int, *, is_end: bool) -> int:
    place = data.find(MAGIC, start)
    if place >= 0:
        return place
    return len(data) if is_end else max(start, len(data) - len(MAGIC) + 1)


def _read(data: bytes, place: int, number: int) -> tuple[Entry, int] | int:
    """The entry at `place` and the offset behind it; or how many bytes it would take; 0 where there is none."""
    if len(data) - place < HEAD_BYTES:
        return HEAD_BYTES if MAGIC.startswith(data[place : place + len(MAGIC)]) else 0
    magic, length, crc = _HEAD.unpack_from(data, place)
    if magic != MAGIC or length > MAX_BODY:
        return 0
    start, end = place + _HEAD.size, place + HEAD_BYTES + length
    if end > len(data):
        return HEAD_BYTES + int(length)
    if zlib.crc32(memoryview(data)[start:end], _seed(number)) != crc:
        return 0
    return _entry(data, start, end), end


def _entry(data: bytes, start: int, end: int) -> Entry:
    """The entry of a frame whose checksum is right, so its lengths are those that were written."""
    kind, written, rows = _CHECKED.unpack_from(data, start)
    topic_length, key_length, header_count = _LENGTHS.unpack_from(data, start + _CHECKED.size)
    place = start + _CHECKED.size + _LENGTHS.size
    topic = data[place : place + topic_length].decode()
    key = data[place + topic_length : place + topic_length + key_length]
    place += topic_length + key_length
    headers = []
    for _ in range(header_count):
        name_length, value_length = _HEADER.unpack_from(data, place)
        place += _HEADER.size
        middle, place = place + name_length, place + name_length + value_length
        headers.append((data[middle - name_length : middle].decode(), data[middle:place]))
    return Entry(EntryKind(kind), topic, Record(key, data[place:end], headers), written, rows)


def entries_of(data: bytes, number: int) -> Iterator[Entry]:
    """Every intact entry of the whole file with a number."""
    return (entry for entry, _ in scan(data, number, is_end=True).found)


def written_at(head: bytes) -> int | None:
    """When the entry whose frame begins with `head` was written, in microseconds since 1970; None where none begins."""
    if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
        return None
    written: int = _CHECKED.unpack_from(head, _HEAD.size)[1]
    return written

"""Frames of records in a spool file: checksummed, and readable again behind damage.

A frame is a head (magic, length of the body, CRC-32 of everything behind it, kind, time, rows) and a body (topic, key,
headers, value of one Kafka record). Behind damage the scan continues at the next magic whose checksum is right.

Pure: bytes in, entries out. No byte is used before its checksum was verified.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from schemas.codec.records import EncodedRecord

MAGIC: Final = b"\xffSL\x03"
"""The last byte is the version of the layout; 0xff occurs in no UTF-8 text, so rarely in a record."""
MAX_BODY: Final = 32 * 1024 * 1024
"""A longer body is damage: no record of the contract comes near it."""

# `<`: no padding, and the same bytes on every machine.
_HEAD: Final = struct.Struct("<4sII")
_CHECKED: Final = struct.Struct("<BqI")
_LENGTHS: Final = struct.Struct("<HIH")
_HEADER: Final = struct.Struct("<HI")
HEAD_BYTES: Final = _HEAD.size + _CHECKED.size


class EntryKind(IntEnum):
    """Kind of a record, which decides the order in which a full spool drops records."""

    DETAIL = 1
    """Device rows of an attempt: dropped first."""
    VERDICT = 2
    """Everything else: dropped last."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One Kafka record that waits in the spool.

    written_at_us: microseconds since 1970. rows: device verdicts in a DETAIL record, else 0.
    """

    kind: EntryKind
    record: EncodedRecord
    written_at_us: int
    rows: int = 0

    @property
    def topic(self) -> str:
        return self.record.topic

    @property
    def ce_id(self) -> str:
        """The CloudEvents id."""
        return next((value.decode() for name, value in self.record.headers if name == "ce_id"), "")


def encode_frame(entry: Entry) -> tuple[bytes, bytes]:
    """Encode the frame in two parts; the second is the record's value itself, which is not copied."""
    record = entry.record
    topic = entry.topic.encode()
    parts = [
        _CHECKED.pack(entry.kind, entry.written_at_us, entry.rows),
        _LENGTHS.pack(len(topic), len(record.key), len(record.headers)),
        topic,
        record.key,
    ]
    for text, value in record.headers:
        name = text.encode()
        parts += (_HEADER.pack(len(name), len(value)), name, value)
    checked = b"".join(parts)
    # Continued over the value: joining it with the head would copy megabytes.
    crc = zlib.crc32(record.value, zlib.crc32(checked))
    length = len(checked) - _CHECKED.size + len(record.value)
    return _HEAD.pack(MAGIC, length, crc) + checked, record.value


def encode_frames(entries: Iterable[Entry]) -> list[bytes]:
    """Encode the frames of all entries, as parts to be written one after the other."""
    return [part for entry in entries for part in encode_frame(entry)]


def measure(entries: Iterable[Entry]) -> int:
    """Measure the bytes that the entries take in a file."""
    return sum(map(_measure_entry, entries))


def _measure_entry(entry: Entry) -> int:
    record = entry.record
    headers = sum([_HEADER.size + len(name.encode()) + len(value) for name, value in record.headers])
    return HEAD_BYTES + _LENGTHS.size + len(entry.topic.encode()) + len(record.key) + headers + len(record.value)


@dataclass(slots=True)
class Scan:
    """Result of scanning a run of bytes.

    intact: entries, each with the offset behind it. consumed: bytes that need not be read again. wanted: bytes that are
    needed to read the next entry, 0 when all were read. damaged: gaps between entries.
    """

    intact: list[tuple[Entry, int]] = field(default_factory=list)
    consumed: int = 0
    wanted: int = 0
    damaged: int = 0


def scan(data: bytes, *, is_end: bool) -> Scan:
    """Scan `data`, which starts at a frame, for intact entries; damaged bytes are skipped.

    is_end: no byte follows, so a frame that is cut off is damage; otherwise the scan stops there for more bytes.
    """
    result, offset, is_lost = Scan(), 0, False
    while offset < len(data):
        read = _read(data, offset)
        if isinstance(read, int) and read and not is_end:
            result.wanted = read
            break
        if isinstance(read, int):
            # A gap counts once, however many false magics it holds.
            result.damaged += not is_lost
            is_lost = True
            # One byte further, not behind the frame: its length may be what is damaged.
            offset = _find_magic(data, offset + 1, is_end=is_end)
        else:
            entry, offset = read
            is_lost = False
            result.intact.append((entry, offset))
    result.consumed = min(offset, len(data))
    return result


def _find_magic(data: bytes, start: int, *, is_end: bool) -> int:
    offset = data.find(MAGIC, start)
    if offset >= 0:
        return offset
    # The last bytes may be the beginning of a magic that continues in the next read.
    return len(data) if is_end else max(start, len(data) - len(MAGIC) + 1)


def _read(data: bytes, offset: int) -> tuple[Entry, int] | int:
    """Read the entry at `offset` and the offset behind it; or the number of bytes it would take; 0 where there is
    none."""
    if len(data) - offset < HEAD_BYTES:
        # Fewer than four bytes may still be the beginning of a magic.
        return HEAD_BYTES if MAGIC.startswith(data[offset : offset + len(MAGIC)]) else 0
    magic, length, crc = _HEAD.unpack_from(data, offset)
    # A damaged length could otherwise make the reader wait for 4 GiB.
    if magic != MAGIC or length > MAX_BODY:
        return 0
    start, end = offset + _HEAD.size, offset + HEAD_BYTES + length
    if end > len(data):
        return HEAD_BYTES + int(length)
    # A view: slicing the bytes would copy every frame to check it.
    if zlib.crc32(memoryview(data)[start:end]) != crc:
        return 0
    return _decode_entry(data, start, end), end


def _decode_entry(data: bytes, start: int, end: int) -> Entry:
    """Decode the entry of a frame whose checksum is right, so that all lengths in it are right too."""
    kind, written, rows = _CHECKED.unpack_from(data, start)
    topic_length, key_length, header_count = _LENGTHS.unpack_from(data, start + _CHECKED.size)
    position = start + _CHECKED.size + _LENGTHS.size
    topic = data[position : position + topic_length].decode()
    key = data[position + topic_length : position + topic_length + key_length]
    position += topic_length + key_length
    headers = []
    for _ in range(header_count):
        name_length, value_length = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        middle, position = position + name_length, position + name_length + value_length
        headers.append((data[middle - name_length : middle].decode(), data[middle:position]))
    return Entry(EntryKind(kind), EncodedRecord(key, data[position:end], headers, topic), written, rows)


def decode_entries(data: bytes) -> Iterator[Entry]:
    """Decode every intact entry of a file's content."""
    return (entry for entry, _ in scan(data, is_end=True).intact)


def read_time(head: bytes) -> int | None:
    """Read when the entry whose frame begins with `head` was written, in microseconds since 1970; None without a
    frame."""
    if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
        return None
    written: int = _CHECKED.unpack_from(head, _HEAD.size)[1]
    return written

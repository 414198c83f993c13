"""From bytes to lines: encodings, line ends, prefixes of container runtimes, colours, and values of several lines.

A block is searched as a whole first. What it does not contain (a carriage return, an escape, a prefix) is not searched
for in every line. What other tools put around a line is removed by ``copies``.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, overload

import orjson

from ingest.lines.blocks import Lines, LogPosition, Origin
from ingest.lines.copies import BARE, HEAD, CopiedLine, Copies

MAX_LINE_BYTES: Final = 16 * 1024**2
"""The rest of a longer line is dropped."""
MAX_JOINED_BYTES: Final = 1024**2
"""Size of a value of several lines; a longer one is read as single lines."""

_MAX_PARTS: Final = 100_000
_MAX_VALUES: Final = 100
"""Values of several lines in one line."""

_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_STAMP: Final = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
_CRI: Final = re.compile(_STAMP + rb" std(?:out|err) ([FP])(?::\w+)* ?")
_STAMPED: Final = re.compile(_STAMP + rb" (?=(?:\(v=\d{1,2}\) ?)?[IWEF]\d{4} |\{|\S*\d{4}-\d\d-\d\dT)")
# datetime takes microseconds; container runtimes write nanoseconds.
_NANOSECONDS: Final = re.compile(rb"(\.\d{6})\d+")

_DOCKER_PART: Final = 16 * 1024
"""Bytes at which Docker divides a line."""
_DOCKER_KEYS: Final = {"log", "stream", "time", "attrs"}
_DOCKER: Final = (b'{"log":"', b'{"log": "')
_IS_BARE: Final = re.compile(BARE + rb"| >|\n|\Z").match
_NEEDS_CARE: Final = re.compile(rb"\n(?:(?<==<\n)|(?!%s|\n|\Z))" % BARE)
"""Matches a line end before a line that does not begin as a scheduler begins it, or after one that begins a value of
several lines.

One pattern, because searching a block once per case takes longer.
"""
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""Byte order marks: PowerShell and editors of Windows write them."""
_MARKED_BYTES: Final = 4
"""Bytes of a mark and the character after it."""


def read_time(text: bytes) -> datetime | None:
    """Parse RFC 3339 with up to nanoseconds, from container runtimes and the API server; UTC to the microsecond."""
    try:
        moment = datetime.fromisoformat(_NANOSECONDS.sub(rb"\1", text).decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None
    return moment.astimezone(UTC) if moment.tzinfo and 1970 < moment.year < 9999 else None


class Times(Sequence[datetime | None]):
    """The times of lines, parsed on access: most of them are never used."""

    def __init__(self, stamps: Sequence[bytes]) -> None:
        self._stamps = stamps

    def __len__(self) -> int:
        return len(self._stamps)

    @overload
    def __getitem__(self, position: int) -> datetime | None: ...
    @overload
    def __getitem__(self, position: slice) -> "Times": ...
    def __getitem__(self, position: int | slice) -> "datetime | Times | None":
        if isinstance(position, slice):
            return Times(self._stamps[position])
        return read_time(self._stamps[position])


@dataclass(slots=True)
class Framing:
    """Bytes of one log in, whole lines out.

    Positions in a log in UTF-16 count bytes of UTF-8: such a log is only read from its beginning.
    """

    origin: Origin
    end: LogPosition = field(default_factory=LogPosition)
    """After the last line that was returned. Reading may continue there; it then reads again what is held back."""
    _first: bytes | None = b""
    """The first bytes, until there are enough to tell the encoding; None afterwards."""
    _decoder: codecs.IncrementalDecoder | None = None
    """For a log in UTF-16."""
    _copies: Copies = field(default_factory=Copies)
    _end_of_lines: LogPosition = field(init=False)
    """After the last complete line, returned or held back."""
    _tail: bytes = b""
    """The beginning of a line whose end was not read yet."""
    _dropped_bytes: int = 0
    """Bytes dropped so far from a line that is too long."""
    _is_dropping: bool = False
    _parts: list[bytes] = field(default_factory=list)
    """The parts of a line that the container runtime divided (CRI: at 16 KiB)."""
    _parts_bytes: int = 0
    _value: list[bytes] = field(default_factory=list)
    """The lines of a value whose end was not read yet."""
    _value_bytes: int = 0
    _values_closed: int = 0
    """Values that ended in the line that is being joined: each of them copies the line."""
    held_lines: int = 0
    """Lines that were fed and not returned yet: parts of a line, or of a value."""
    _held_bytes: int = 0

    def __post_init__(self) -> None:
        self._end_of_lines = self.end
        if self.end.offset:
            self._first = None

    def feed(self, data: bytes) -> Lines | None:
        """Return the lines that end in ``data``; None if none ends there."""
        if self._first is not None:
            data = self._detect_encoding(data)
        elif self._decoder:
            data = self._decoder.decode(data).encode(errors="replace")
        if self._is_dropping:
            stop = data.find(b"\n")
            self._dropped_bytes += stop if stop >= 0 else len(data)
            if stop < 0:
                return None
            data, self._is_dropping = data[stop:], False
        data = self._tail + data
        stop = data.rfind(b"\n") + 1
        self._tail = data[stop:]
        if len(self._tail) > MAX_LINE_BYTES:
            self._dropped_bytes += len(self._tail) - MAX_LINE_BYTES
            self._tail, self._is_dropping = self._tail[:MAX_LINE_BYTES], True
        return self._split(data[:stop]) if stop else None

    def _detect_encoding(self, data: bytes) -> bytes:
        """Detect the encoding by the byte order mark, and return the first bytes in UTF-8, without the mark."""
        data = (self._first or b"") + data
        if any(data.startswith(mark[: len(data)]) for mark, _ in _MARKS) and len(data) < _MARKED_BYTES:
            self._first = data
            return b""
        self._first = None
        return self._decode_marked(data)

    def _decode_marked(self, data: bytes) -> bytes:
        """Drop the byte order mark, and choose the decoder. UTF-16 shows by the zero in its first character too: bytes
        that only look like the mark are any broken line's."""
        mark, encoding = next((pair for pair in _MARKS if data.startswith(pair[0])), (b"", ""))
        if not encoding.startswith("utf-16"):
            return data[len(mark) :]
        if b"\0" not in data[:_MARKED_BYTES]:
            return data
        data = data[len(mark) :]
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        return self._decoder.decode(data).encode(errors="replace")

    def close(self) -> Lines | None:
        """Return the last line, if it has no line end, and the lines that were held back."""
        if self._first:
            self._tail, self._first = self._decode_marked(self._first), None
        tail, self._tail, self._is_dropping = self._tail, b"", False
        lines = self._split(tail) if tail else None
        held = [b"".join(self._parts)] if self._parts else []
        held += self._value
        self._parts.clear()
        self._value.clear()
        self._parts_bytes = self._values_closed = 0
        if not held:
            return lines
        return Lines(
            self.origin, [*(lines.texts if lines else ()), *held], lines.position if lines else self.end, None, self.end
        )

    def _split(self, block: bytes) -> Lines:
        texts = block.split(b"\n")
        if not texts[-1]:
            # split() gives an empty text after the last line end.
            texts.pop()
        position, start = self.end, self._end_of_lines
        self._end_of_lines = LogPosition(start.offset + len(block) + self._dropped_bytes, start.number + len(texts))
        self._dropped_bytes = 0
        if not self._is_plain(block):
            return self._unwrap_lines(texts, position)
        self.end = self._end_of_lines
        return Lines(self.origin, texts, position, None, self.end)

    def _is_plain(self, block: bytes) -> bool:
        """Tell whether a block has no prefixes, colours, carriage returns and values of several lines."""
        if self._parts or self._value or not _IS_BARE(block):
            return False
        return not (b"\r" in block or b"\x1b" in block or _NEEDS_CARE.search(block))

    def _unwrap_lines(self, texts: list[bytes], position: LogPosition) -> Lines:
        """Unwrap line by line. What is held back at the end does not count as read."""
        joined: list[bytes] = []
        stamps: list[bytes] = []
        for text in texts:
            unwrapped, stamp = self._unwrap(text)
            if unwrapped is None:
                pass
            elif _IS_BARE(unwrapped) and not self._value and unwrapped[-2:] != b"=<":
                joined.append(unwrapped)
                stamps.append(stamp)
            else:
                closed = self._join_copies(unwrapped)
                joined += [copied.text for copied in closed]
                stamps += [stamp or copied.stamp for copied in closed]
            is_held = bool(self._parts or self._value)
            self._held_bytes = (self._held_bytes + len(text) + 1) * is_held
            self.held_lines = (self.held_lines + 1) * is_held
        self.end = LogPosition(
            self._end_of_lines.offset - self._held_bytes, self._end_of_lines.number - self.held_lines
        )
        return Lines(self.origin, joined, position, Times(stamps) if any(stamps) else None, self.end)

    def _join_copies(self, text: bytes) -> list[CopiedLine]:
        """Return the lines that end with this one, without what was put around it."""
        is_value = bool(self._value) and text[:1] == b"\t"
        copies = [CopiedLine(text)] if is_value or _IS_BARE(text) else self._copies.unwrap(text)
        return [CopiedLine(line, copied.stamp) for copied in copies for line in self._join_value(copied.text)]

    def _unwrap(self, text: bytes) -> tuple[bytes | None, bytes]:
        """Remove the runtime's prefix, colours and carriage return, and return the line with its time; None for a part
        of a line.

        The last part returns the whole line.
        """
        stamp, is_partial = b"", False
        # The century first: it spares most lines two expressions.
        if text[:2] == b"20":
            if cri := _CRI.match(text):
                stamp, text, is_partial = cri[1], text[cri.end() :], cri[2] == b"P"
            elif stamped := _STAMPED.match(text):
                stamp, text = stamped[1], text[stamped.end() :]
        elif text.startswith(_DOCKER) and (docker := _parse_docker(text)):
            (text, stamp), is_partial = docker, not docker[0].endswith(b"\n")
        if is_partial:
            # A runtime that never ends a line must not fill the memory.
            if self._parts_bytes < MAX_LINE_BYTES and len(self._parts) < _MAX_PARTS:
                self._parts.append(text)
                self._parts_bytes += len(text)
            return None, stamp
        if self._parts:
            text = b"".join([*self._parts, text])
            self._parts.clear()
            self._parts_bytes = 0
        text = text.rstrip(b"\r\n")
        return (_COLOURS.sub(b"", text) if b"\x1b" in text else text), stamp

    def _join_value(self, text: bytes) -> list[bytes]:
        """Join a value of several lines: klog writes ``key=<``, lines after a tab, `` >``. It becomes ``key="…"``."""
        if not self._value:
            if text[-2:] != b"=<" or self._values_closed >= _MAX_VALUES:
                self._values_closed = 0
                return [text]
            self._value, self._value_bytes = [text], len(text)
            return []
        self._value.append(text)
        self._value_bytes += len(text)
        # klog closes the value with a line of its own, on which further keys may follow.
        if text[:2] == b" >":
            return self._close_value()
        if text[:1] == b"\t" and self._value_bytes < MAX_JOINED_BYTES:
            return []
        broken, self._value, self._values_closed = self._value, [], 0
        return broken

    def _close_value(self) -> list[bytes]:
        head, *lines, last = self._value
        self._value = []
        self._values_closed += 1
        value = b"\n".join(line[1:] for line in lines)
        escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        joined = head[:-1] + b'"' + escaped + b'"' + last[2:]
        return self._join_value(joined)


def _parse_docker(text: bytes) -> tuple[bytes, bytes] | None:
    """Parse one line of Docker's json-file: ``{"log":"…\\n","stream":"stderr","time":"…"}``."""
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(entry, dict) or not isinstance(log := entry.get("log"), str) or not entry.keys() <= _DOCKER_KEYS:
        return None
    # Docker marks the last part of a line by its line end, which Fluent Bit drops: its lines are whole.
    if HEAD.match(log.encode(errors="replace")) and not log.endswith("\n") and len(log) < _DOCKER_PART:
        log += "\n"
    time = entry.get("time")
    return log.encode("utf-8", "replace"), time.encode("utf-8", "replace") if isinstance(time, str) else b""

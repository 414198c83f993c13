"""From bytes to lines: ends of lines, prefixes of container runtimes, colours, and values of several lines.

A block is looked at as a whole first. What it does not contain (a carriage return, an escape, a prefix) is not looked
for line by line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, overload

import orjson

from ingest.lines.blocks import Lines, Origin, Place

MAX_LINE_BYTES: Final = 16 * 1024**2
"""Of a line that goes on beyond this, the rest is left out."""
MAX_JOINED_BYTES: Final = 1024**2
"""Of a value of several lines; a longer one is no value."""

_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_STAMP: Final = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
_CRI: Final = re.compile(_STAMP + rb" std(?:out|err) ([FP])(?::\w+)* ?")
_STAMPED: Final = re.compile(_STAMP + rb" (?=[IWEF]\d{4} |\{|\S*\d{4}-\d\d-\d\dT)")
_NANOSECONDS: Final = re.compile(rb"(\.\d{6})\d+")

_DOCKER: Final = b'{"log":"'
_PREFIX: Final = re.compile(_STAMP + rb" ")
_SIGN: Final = re.compile(rb'\n(?:20[\d-]{8}T[\d:.Z+-]*+ |\{"log":"|(?<==<\n))')
"""Stands at an end of a line where the next line has a prefix, or this one begins a value of several lines. One walk
from end to end: each of them looked for by itself takes longer. KAI's lines begin with a time too, and a tab behind."""


def read_time(text: bytes) -> datetime | None:
    """RFC 3339 with up to nanoseconds, as container runtimes and the API server write it; UTC to the microsecond."""
    try:
        moment = datetime.fromisoformat(_NANOSECONDS.sub(rb"\1", text).decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None
    return moment.astimezone(UTC) if moment.tzinfo and 1970 < moment.year < 9999 else None


class Times(Sequence[datetime | None]):
    """The times beside lines, read when they are asked for: most of them never are."""

    def __init__(self, stamps: Sequence[bytes]) -> None:
        self._stamps = stamps

    def __len__(self) -> int:
        return len(self._stamps)

    @overload
    def __getitem__(self, place: int) -> datetime | None: ...
    @overload
    def __getitem__(self, place: slice) -> "Times": ...
    def __getitem__(self, place: int | slice) -> "datetime | Times | None":
        if isinstance(place, slice):
            return Times(self._stamps[place])
        return read_time(self._stamps[place])


@dataclass(slots=True)
class Framing:
    """Bytes of one log in, whole lines out."""

    origin: Origin
    end: Place = field(default_factory=Place)
    """Behind the last line that was given out: reading may go on there, and reads again what was held back."""
    _behind: Place = field(init=False)
    """Behind the last whole line, given out or held back."""
    _rest: bytes = b""
    """The beginning of a line whose end has not come."""
    _left_out: int = 0
    """Bytes of a line that is too long."""
    _is_leaving_out: bool = False
    _parts: list[bytes] = field(default_factory=list)
    """Of a line that its container runtime has cut."""
    _value: list[bytes] = field(default_factory=list)
    """The lines of a value that is not closed yet."""
    held_lines: int = 0
    """Lines that were fed and are not given out yet: parts of one that goes on, or of a value."""
    _held_bytes: int = 0

    def __post_init__(self) -> None:
        self._behind = self.end

    def feed(self, data: bytes) -> Lines | None:
        """The lines that end in ``data``; None where none does."""
        if self._is_leaving_out:
            stop = data.find(b"\n")
            self._left_out += stop if stop >= 0 else len(data)
            if stop < 0:
                return None
            data, self._is_leaving_out = data[stop:], False
        data = self._rest + data
        stop = data.rfind(b"\n") + 1
        self._rest = data[stop:]
        if len(self._rest) > MAX_LINE_BYTES:
            self._left_out += len(self._rest) - MAX_LINE_BYTES
            self._rest, self._is_leaving_out = self._rest[:MAX_LINE_BYTES], True
        return self._lines(data[:stop]) if stop else None

    def close(self) -> Lines | None:
        """The last line, where no end of line follows, and what was held back."""
        rest, self._rest, self._is_leaving_out = self._rest, b"", False
        lines = self._lines(rest) if rest else None
        held = [b"".join(self._parts)] if self._parts else []
        held += self._value
        self._parts.clear()
        self._value.clear()
        if not held:
            return lines
        return Lines(
            self.origin, [*(lines.texts if lines else ()), *held], lines.place if lines else self.end, None, self.end
        )

    def _lines(self, whole: bytes) -> Lines:
        texts = whole.split(b"\n")
        if not texts[-1]:
            texts.pop()
        place, behind = self.end, self._behind
        self._behind = Place(behind.offset + len(whole) + self._left_out, behind.number + len(texts))
        self._left_out = 0
        if not self._is_plain(whole):
            return self._careful(texts, place)
        self.end = self._behind
        return Lines(self.origin, texts, place, None, self.end)

    def _is_plain(self, whole: bytes) -> bool:
        """No prefixes, colours, carriage returns and values of several lines."""
        if self._parts or self._value or whole[:8] == _DOCKER or _PREFIX.match(whole):
            return False
        return not (b"\r" in whole or b"\x1b" in whole or _SIGN.search(whole))

    def _careful(self, texts: list[bytes], place: Place) -> Lines:
        """Line by line. What is held back at the end does not count as read."""
        found: list[bytes] = []
        stamps: list[bytes] = []
        for text in texts:
            unwrapped, stamp = self._unwrapped(text)
            if unwrapped is not None and not self._value and unwrapped[-2:] != b"=<":
                found.append(unwrapped)
                stamps.append(stamp)
            elif unwrapped is not None:
                closed = self._closed(unwrapped)
                found += closed
                stamps += [stamp] * len(closed)
            is_held = bool(self._parts or self._value)
            self._held_bytes = (self._held_bytes + len(text) + 1) * is_held
            self.held_lines = (self.held_lines + 1) * is_held
        self.end = Place(self._behind.offset - self._held_bytes, self._behind.number - self.held_lines)
        return Lines(self.origin, found, place, Times(stamps) if any(stamps) else None, self.end)

    def _unwrapped(self, text: bytes) -> tuple[bytes | None, bytes]:
        """Without the runtime's prefix, colours and carriage return; None for a part of a line that goes on."""
        stamp, goes_on = b"", False
        if text[:2] == b"20":
            if cri := _CRI.match(text):
                stamp, text, goes_on = cri[1], text[cri.end() :], cri[2] == b"P"
            elif stamped := _STAMPED.match(text):
                stamp, text = stamped[1], text[stamped.end() :]
        elif text[:8] == _DOCKER and (docker := _docker(text)):
            (text, stamp), goes_on = docker, not docker[0].endswith(b"\n")
        if goes_on:
            if sum(map(len, self._parts)) < MAX_LINE_BYTES:
                self._parts.append(text)
            return None, stamp
        if self._parts:
            text = b"".join([*self._parts, text])
            self._parts.clear()
        text = text.rstrip(b"\r\n")
        return (_COLOURS.sub(b"", text) if b"\x1b" in text else text), stamp

    def _closed(self, text: bytes) -> list[bytes]:
        """klog writes a value of several lines as ``key=<``, lines behind a tab, and `` >``; here: ``key="…"``."""
        if not self._value:
            if text[-2:] != b"=<":
                return [text]
            self._value.append(text)
            return []
        self._value.append(text)
        if text[:2] == b" >":
            return self._close_value()
        if text[:1] == b"\t" and sum(map(len, self._value)) < MAX_JOINED_BYTES:
            return []
        broken = list(self._value)
        self._value.clear()
        return broken

    def _close_value(self) -> list[bytes]:
        head, *lines, last = self._value
        self._value.clear()
        value = b"\n".join(line[1:] for line in lines)
        escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        joined = head[:-1] + b'"' + escaped + b'"' + last[2:]
        return self._closed(joined)


def _docker(text: bytes) -> tuple[bytes, bytes] | None:
    """One line of Docker's json-file: ``{"log":"…\\n","stream":"stderr","time":"…"}``."""
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(said, dict) or not isinstance(log := said.get("log"), str):
        return None
    time = said.get("time")
    return log.encode("utf-8", "replace"), time.encode("utf-8", "replace") if isinstance(time, str) else b""

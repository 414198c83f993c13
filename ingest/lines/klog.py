"""klog's text form: ``Lmmdd hh:mm:ss.uuuuuu pid file:line] "message" key="value" …``.

Keys may hold spaces (``device index=0``) and values may hold anything, so a value is found by its key and its quotes,
not by splitting at spaces. Strings are quoted as Go quotes them: a quote inside is always escaped, so ``key="`` never
stands inside a value.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_HEADER: Final = re.compile(
    rb"(?:\(v=\d\d?\) ?)?[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) +\d+ +[^\s\]]{1,200}:\d+\] +"
)
_HEADER_START: Final = re.compile(rb"(?:\(v=\d\d?\) ?)?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_ESCAPE: Final = re.compile(r'\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[abfnrtv\\\'"])')
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBER: Final = re.compile(rb"-?\d{1,18}(?![\w.])")
_DECIMAL: Final = re.compile(rb'"?([+-]?(?:\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?|Inf|NaN))"?(?![\w.])')

_MAX_AHEAD: Final = timedelta(days=1)
"""A line may be this much later than the reference: a clock that is ahead must not put it into the year before."""


def has_header(line: bytes) -> bool:
    return _HEADER_START.match(line) is not None


def find_message(line: bytes) -> int:
    """Find the index of the message, after the header; -1 for a line without a header."""
    end = line.find(b"] ", 20, 300)
    return end + 2 if end > 0 else -1


def is_of_file(line: bytes, files: tuple[bytes, ...]) -> bool:
    """Tell whether a source file with one of these names, or endings of names, printed the line."""
    end = line.find(b"] ", 20, 300)
    start = line.find(b".go:", 20, end) if end > 0 else -1
    return start > 0 and line.endswith(files, 0, start)


def parse_time(line: bytes, reference: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Parse the time of the line, in UTC; None for a line without a valid header.

    klog writes neither year nor zone: the year is the latest that is not more than a day after ``reference``.
    """
    if not (header := _HEADER.match(line)):
        return None
    month, day, hour, minute, second, micro = map(int, header.groups())
    local = reference.astimezone(zone)
    # Eight years: 29 February may be missing for so long (1896 to 1904, 2096 to 2104).
    for year in range(local.year + 1, local.year - 8, -1):
        try:
            time = datetime(year, month, day, hour, minute, second, micro, zone)
        except ValueError:  # no such day in that year, or in any
            continue
        if time - local <= _MAX_AHEAD:
            utc = time.astimezone(UTC)
            return utc if utc.year >= 1970 else None
    return None


def read_quoted(line: bytes, key: bytes) -> str | None:
    """Read the text of ``key="…"``; None if the key is missing or the text does not end."""
    start = _find_value(line, key + b'="')
    if start < 0:
        return None
    end = line.find(b'"', start)
    # Go escapes a quote inside; an even number of backslashes escapes only each other.
    while end > 0 and _is_escaped(line, end):
        end = line.find(b'"', end + 1)
    return None if end < 0 else unquote(line[start:end])


def _find_value(line: bytes, key: bytes) -> int:
    index = line.find(b" " + key)
    return index + 1 + len(key) if index >= 0 else -1


def _is_escaped(line: bytes, index: int) -> bool:
    before = index
    while line[before - 1 : before] == b"\\":
        before -= 1
    return (index - before) % 2 == 1


def unquote(text: bytes) -> str:
    """Resolve the escapes of a text that Go quoted."""
    decoded = text.decode(errors="replace")
    return _ESCAPE.sub(_unescape, decoded) if "\\" in decoded else decoded


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xuU":
        point = int(code[1:], 16)
    elif code[0] in "01234567":
        point = int(code, 8)
    else:
        return _LETTERS.get(code, code)
    return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\ufffd"


def read_integer(line: bytes, key: bytes) -> int | None:
    """Read the integer of ``key=…``."""
    start = _find_value(line, key + b"=")
    match = _NUMBER.match(line, start) if start >= 0 else None
    return int(match[0]) if match else None


def read_decimal(line: bytes, key: bytes) -> float | None:
    """Read the number of ``key=…``, with or without quotes."""
    start = _find_value(line, key + b"=")
    match = _DECIMAL.match(line, start) if start >= 0 else None
    return float(match[1]) if match else None


def read_tail(line: bytes, key: bytes) -> bytes | None:
    """Read everything after ``key=``, for a value such as JSON, whose end only its own parser finds."""
    start = _find_value(line, key + b"=")
    return line[start:] if start >= 0 else None

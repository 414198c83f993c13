"""Copies of log lines: the text that kubectl, stern, k9s, log stores, chats and mail put around a scheduler's line.

The line is recognised, not its surroundings: a log is pasted in more ways than anyone can list, and a scheduler's line
begins in few. What stands before the beginning is dropped; JSON, and a line in quotes, are decoded first.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby, pairwise
from typing import Any, Final, NamedTuple

import orjson

from ingest.lines.blocks import Lines

MAX_PREFIX: Final = 600
"""A line's beginning is looked for within so many bytes."""
MAX_NESTING: Final = 8
MAX_LINES: Final = 200_000
"""Lines of one JSON document."""
MAX_COMPARED: Final = 2_000
"""Lines by whose times the order of a log is detected."""
MAX_REVERSED_BYTES: Final = 256 * 1024**2

_KLOG: Final = rb"(?:\(v=\d{1,2}\) ?)?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d{1,9} [^\s\]]{1,200}:\d{1,6}\] "
_ZAP: Final = rb"20\d\d-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:?\d\d)\t"
_ZAP_JSON: Final = rb'\{"level":"\w{1,20}","ts":"[^"]{1,40}","caller":"'
_TAG: Final = rb"\[[A-Z]{2,20}(?:_[A-Z]{2,20}){1,3}\] "
HEAD: Final = re.compile(rb"(?:%s|%s|%s|%s)" % (_KLOG, _ZAP, _ZAP_JSON, _TAG))
"""The beginning of a line of HAMi, kube-scheduler or Volcano (klog), or of KAI (zap, and the tags of its patch)."""
BARE: Final = (
    rb"[IWEF]\d{4} |\(v=\d|\t(?![ \t]*(?:\(v=\d|[IWEF]\d{4} |%s|%s|%s))|20[\d-]{8}T[\d:.Z+-]{1,40}+\t|\[[A-Z]{2,20}_|"
    % (_ZAP, _ZAP_JSON, _TAG)
    + _ZAP_JSON
)
"""Beginnings of lines as schedulers write them, and of lines that continue one."""

_JSON: Final = re.compile(rb'[ \t]*(?:\{[ \t]*"|\[[ \t]*[\[{"])')
_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_QUOTED: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_QUOTES: Final = b"'`"
_CLOSING: Final = b" \t,;:}])|"
_ESCAPED_ZAP: Final = re.compile(rb'"\{(?:\\"|"")level(?:\\"|"")')
"""The beginning of KAI's JSON as a text within quotes: JSON escapes its own quotes, a table doubles them."""
_NANOSECONDS: Final = re.compile(r"1\d{18}")


class CopiedLine(NamedTuple):
    text: bytes
    stamp: bytes = b""
    """The time that the copy gives to the line, RFC 3339; empty if it gives none."""


class Copies:
    """Removes the surroundings of the lines of one log, in their order."""

    def __init__(self) -> None:
        self._prefix = b""
        """Text before the last line's beginning: the lines of a value that continues it have the same."""

    def unwrap(self, text: bytes) -> list[CopiedLine]:
        """Return the scheduler's lines in a line that is not bare; the line as it is if it has none."""
        if _JSON.match(text) and (lines := _list_lines_in_json(text)):
            return lines
        if (escaped := _ESCAPED_ZAP.search(text, 0, MAX_PREFIX)) and (line := _decode_zap(text, escaped)):
            stamps = _STAMP.findall(text[: escaped.start()])
            return [CopiedLine(line, stamps[-1] if stamps else b"")]
        # Most lines begin where the line before began.
        head = HEAD.match(text, len(self._prefix)) or HEAD.search(text, 0, MAX_PREFIX)
        if head is None:
            return [CopiedLine(self._continue_value(text))]
        prefix = text[: head.start()]
        self._prefix = prefix
        stamps = _STAMP.findall(prefix)
        return [CopiedLine(_unquote(text, head.start()), stamps[-1] if stamps else b"")]

    def _continue_value(self, text: bytes) -> bytes:
        prefix = self._prefix
        if prefix and text.startswith(prefix):
            return text[len(prefix) :]
        # With --timestamps the end of the prefix differs from line to line.
        stamps = list(_STAMP.finditer(prefix))
        if stamps and text.startswith(prefix[: stamps[-1].start()]):
            start = stamps[-1].start()
            if stamp := _STAMP.match(text, start):
                return text[stamp.end() + 1 :]
        return text


def _unquote(text: bytes, start: int) -> bytes:
    """Cut the line out of the quotes around it: those of JSON, of a table (CSV), or single ones."""
    before = text[start - 1 : start] if start else b""
    if before == b'"':
        quoted = _QUOTED.match(text, start - 1)
        # A table doubles the quotes within its quotes; JSON escapes them.
        if quoted and text[quoted.end() : quoted.end() + 1] == b'"':
            return text[start : text.rfind(b'"')].replace(b'""', b'"')
        return _decode_text(quoted[0]) if quoted else text[start:]
    line = text[start:]
    end = line.rstrip(_CLOSING)
    return end[:-1] if before and before in _QUOTES and end.endswith(before) else line


def _decode_zap(text: bytes, escaped: re.Match[bytes]) -> bytes:
    """Decode KAI's JSON within quotes; empty if the quotes do not end."""
    if escaped[0].startswith(b'"{""'):
        return text[escaped.start() + 1 : text.rfind(b'"')].replace(b'""', b'"')
    quoted = _QUOTED.match(text, escaped.start())
    return _decode_text(quoted[0]) if quoted else b""


def _decode_text(quoted: bytes) -> bytes:
    try:
        decoded = orjson.loads(quoted)
    except orjson.JSONDecodeError:
        return quoted[1:-1]
    return decoded.encode(errors="replace").rstrip(b"\r\n") if isinstance(decoded, str) else quoted[1:-1]


def _list_lines_in_json(text: bytes) -> list[CopiedLine]:
    """List the lines in a JSON document, the oldest first; log stores give the newest first."""
    try:
        document = orjson.loads(text.strip(b", \t\r\n"))
    except orjson.JSONDecodeError:
        return []
    lines: list[CopiedLine] = []
    for line in _iterate_lines(document, b"", MAX_NESTING):
        lines.append(line)
        if len(lines) >= MAX_LINES:
            break
    return lines[::-1] if is_newest_first([line.text for line in lines]) else lines


def _iterate_lines(value: Any, stamp: bytes, nesting: int) -> Iterator[CopiedLine]:
    """Iterate over the texts of a JSON value that begin as a scheduler's line, each with a time that stands near it."""
    if isinstance(value, str):
        yield from _split_text(value, stamp)
    elif isinstance(value, dict | list) and nesting:
        members = list(value.values()) if isinstance(value, dict) else value
        nearest = next(filter(None, map(_find_stamp, members)), stamp)
        for member in members:
            yield from _iterate_lines(member, nearest, nesting - 1)


def _split_text(value: str, stamp: bytes) -> Iterator[CopiedLine]:
    # Stores keep a line with its end; some keep several lines in one text.
    for text in value.encode(errors="replace").splitlines():
        if (escaped := _ESCAPED_ZAP.search(text, 0, MAX_PREFIX)) and (line := _decode_zap(text, escaped)):
            yield CopiedLine(line, stamp)
        elif head := HEAD.search(text, 0, MAX_PREFIX):
            yield CopiedLine(_unquote(text, head.start()), stamp)


def _find_stamp(value: Any) -> bytes:
    """Return the time in a JSON value: RFC 3339, or nanoseconds since 1970 as Loki writes them."""
    if not isinstance(value, str) or len(value) > 40:
        return b""
    if _NANOSECONDS.fullmatch(value):
        return datetime.fromtimestamp(int(value[:10]), UTC).isoformat().encode()
    return value.encode() if _STAMP.fullmatch(value.encode(errors="replace")) else b""


_ORDER: Final = re.compile(rb"(?:\(v=\d{1,2}\) ?)?[IWEF](\d{4} \d\d:\d\d:\d\d\.\d{6})|(20\d\d-\d\d-\d\dT[\d:.]{8,20})")


def is_newest_first(texts: Sequence[bytes]) -> bool:
    """Tell whether most lines are older than the line before them, as log stores answer queries."""
    matches = [match for text in texts if (match := _ORDER.match(text))]
    times: list[bytes] = [match[1] or match[2] for match in matches]
    falls = sum(later < earlier for earlier, later in pairwise(times))
    rises = sum(later > earlier for earlier, later in pairwise(times))
    return falls > 4 * rises


def restore_order(blocks: Iterable[Lines]) -> Iterator[Lines]:
    """Yield the blocks, those of a log that has its newest line first in the order in which it was written."""
    for _, run in groupby(blocks, key=lambda lines: lines.origin.name):
        yield from _restore_log(run)


def _restore_log(run: Iterator[Lines]) -> Iterator[Lines]:
    for first in run:
        log = chain([first], run)
        yield from _turn_round(log) if is_newest_first(first.texts[:MAX_COMPARED]) else log


def _turn_round(blocks: Iterable[Lines]) -> Iterator[Lines]:
    """Yield the lines in reverse; a log that is too large for the memory is reversed in parts."""
    parts: list[Lines] = []
    size = 0
    for lines in blocks:
        parts.append(lines)
        size += sum(map(len, lines.texts))
        if size > MAX_REVERSED_BYTES:
            yield _join_reversed(parts)
            parts, size = [], 0
    if parts:
        yield _join_reversed(parts)


def _join_reversed(parts: Sequence[Lines]) -> Lines:
    texts = [text for lines in reversed(parts) for text in reversed(lines.texts)]
    times = [time for lines in reversed(parts) for time in reversed(lines.times or [None] * len(lines.texts))]
    first, last = parts[0], parts[-1]
    return Lines(last.origin, texts, first.position, times if any(times) else None, last.end)

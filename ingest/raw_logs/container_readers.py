"""The logs in one partition, each with a reader of its own, and which records they still need.

Which scheduler writes a log is seen from its first lines: klog's header is HAMi's (and kube-scheduler's, of which
HAMi's reader knows no line), KAI's lines begin with a time or are JSON with a caller. Pure: records and the time go in.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from ingest.hami.reader import HamiLog
from ingest.kai import KaiLog
from ingest.kai.framing import CONSOLE, JSON
from ingest.kai.grammar import is_kai_file
from ingest.kai.tags import FIRST_BYTES
from ingest.lines.blocks import Lines, Origin, Place
from ingest.protocol import LogReader
from ingest.raw_logs.shippers import ContainerLog, ShippedLine
from schemas.events import Event

MAX_STREAMS: Final = 2_000
MAX_PARTS: Final = 16 * 1024**2
IDLE_SECONDS: Final = 60.0
"""What a container began and did not end is told when it has been silent for so long."""
UNDECIDED_LINES: Final = 1_000
"""A log that has not shown whose it is by then is none of ours."""

_KLOG: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


class WaitingReader(Protocol):
    def waits_for(self) -> set[str]:
        """What was begun and not ended, by names that stay the same until it has."""
        ...


class StreamReader(LogReader, WaitingReader, Protocol):
    """A reader that says what it waits for."""


READERS: Final[dict[str, Callable[[], StreamReader]]] = {"hami-log": HamiLog, "kai-log": KaiLog}


def reader_for(line: bytes) -> str | None:
    """Whose log a line is of; None where it does not show."""
    if _KLOG.match(line):
        return "hami-log"
    if line.startswith(FIRST_BYTES):
        return "kai-log"
    head = JSON.match(line) or CONSOLE.match(line)
    return "kai-log" if head and is_kai_file(head["caller"]) else None


@dataclass(slots=True)
class _Log:
    last_record: float
    kind: str = ""
    reader: StreamReader | None = None
    number: int = 1
    undecided: int = 0
    parts: list[bytes] = field(default_factory=list)
    """Of a line that its container runtime has cut."""
    parts_since: int = 0
    held: dict[str, int] = field(default_factory=dict)
    """What the reader waits for, and the record that it began with."""

    def needs(self) -> int | None:
        since = list(self.held.values()) + ([self.parts_since] if self.parts else [])
        return min(since, default=None)


class ContainerReaders:
    """``lines`` counts by reader and outcome; a line of no scheduler's log counts as ``other``."""

    def __init__(self) -> None:
        self._logs: OrderedDict[ContainerLog, _Log] = OrderedDict()
        self.lines: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._logs)

    def needs(self) -> int | None:
        """The oldest record that would have to be read again after a crash; None where all is told."""
        return min((since for log in self._logs.values() if (since := log.needs()) is not None), default=None)

    def take(self, found: list[ShippedLine], record: int, now: float) -> Iterator[Event]:
        """The lines of one record; ``record`` is its offset."""
        for line in found:
            yield from self._take(line, record, now)
        while len(self._logs) > MAX_STREAMS:
            yield from self._end(self._logs.popitem(last=False)[1])

    def settle(self, now: float) -> Iterator[Event]:
        """What silent containers left open."""
        while self._logs:
            stream, log = next(iter(self._logs.items()))
            if now - log.last_record < IDLE_SECONDS:
                return
            del self._logs[stream]
            yield from self._end(log)

    def _take(self, line: ShippedLine, record: int, now: float) -> Iterator[Event]:
        log = self._logs.pop(line.stream, None) or _Log(now)
        log.last_record = now
        self._logs[line.stream] = log
        text = _whole(log, line, record)
        if text is None or not self._decide(log, text):
            return
        yield from self._read(log, line, text)
        self._remember(log, record)

    def _decide(self, log: _Log, text: bytes) -> bool:
        """Is the log one that we read?"""
        if log.reader is None and log.undecided < UNDECIDED_LINES and (kind := reader_for(text)):
            log.kind, log.reader = kind, READERS[kind]()
        if log.reader is None:
            log.undecided += 1
            self.lines["", "other"] += 1
        return log.reader is not None

    def _read(self, log: _Log, line: ShippedLine, text: bytes) -> Iterator[Event]:
        assert log.reader is not None  # noqa: S101 - decided before
        before = dict(log.reader.counts.lines)
        origin = Origin(
            str(line.stream), line.time or datetime(1970, 1, 1, tzinfo=UTC), line.stream.namespace, line.stream.pod,
            line.stream.container, line.labels,
        )  # fmt: skip
        place = Place(0, log.number)
        yield from log.reader.feed(Lines(origin, [text], place, [line.time], Place(0, log.number + 1)))
        log.number += 1
        for outcome, count in log.reader.counts.lines.items():
            self.lines[log.kind, outcome] += count - before[outcome]

    def _remember(self, log: _Log, record: int) -> None:
        waits = log.reader.waits_for() if log.reader else set()
        log.held = {each: log.held.get(each, record) for each in waits}

    def _end(self, log: _Log) -> Iterator[Event]:
        if log.reader:
            yield from log.reader.close()


def _whole(log: _Log, line: ShippedLine, record: int) -> bytes | None:
    """The line without colours; None for a part of one that goes on."""
    text = _COLOURS.sub(b"", line.text) if b"\x1b" in line.text else line.text
    if line.goes_on:
        if not log.parts:
            log.parts_since = record
        if sum(map(len, log.parts)) < MAX_PARTS:
            log.parts.append(text)
        return None
    if log.parts:
        text = b"".join([*log.parts, text])
        log.parts.clear()
    return text

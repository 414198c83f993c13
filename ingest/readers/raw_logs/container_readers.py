"""The logs of the containers in one partition, each with a reader of its own, and the records that they still need.

The source of a container's log is recognised by its first lines (``ingest.readers.registry``). Pure: records and the
time are arguments.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ingest.lines.blocks import Lines, LogPosition, Origin
from ingest.readers.raw_logs.shippers import ShippedLine, ShippedLog
from ingest.readers.registry import NO_FACTS, WaitingReader, find_source
from ingest.reading.trusted_containers import ContainerName, TrustedContainers
from schemas.events import DEFAULT_CLUSTER, Event

MAX_CONTAINERS: Final = 2_000
"""With an open log; beyond it the one that was silent longest is closed."""
MAX_LINE_BYTES: Final = 16 * 1024**2
MAX_PARTS: Final = 100_000
"""Parts of one line; they may be empty."""
IDLE_SECONDS: Final = 60.0
"""Seconds without a line, after which a container's open attempts are sent as far as they are known."""
MAX_UNDECIDED_LINES: Final = 1_000
"""A log that no source has recognised by then is not read."""

_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(slots=True)
class _OpenLog:
    last_record_at: float
    source: str = ""
    reader: WaitingReader | None = None
    """The log's reader; None until a source has recognised the log."""
    next_number: int = 1
    undecided_lines: int = 0
    parts: list[bytes] = field(default_factory=list)
    """The parts of a line that the container runtime divided."""
    parts_bytes: int = 0
    parts_since: int = 0
    """Offset of the record with the first of them."""
    waits: dict[str, int] = field(default_factory=dict)
    """Everything unfinished in the reader, with the offset of the record in which it began."""

    def find_needed(self) -> int | None:
        """Find the offset of the oldest record that is still needed; None if none is."""
        offsets = list(self.waits.values()) + ([self.parts_since] if self.parts else [])
        return min(offsets, default=None)


class ContainerReaders:
    """``lines`` counts by source and outcome. Of source ``""`` are ``other``, lines of a log that no source recognises,
    and ``untrusted``, those of a container that the configuration does not name."""

    def __init__(self, trusted: TrustedContainers, cluster: str = DEFAULT_CLUSTER) -> None:
        """Start without logs. ``trusted``: believed containers. ``cluster``: for lines whose shipper names none."""
        self._trusted = trusted
        self._cluster = cluster
        self._logs: OrderedDict[ShippedLog, _OpenLog] = OrderedDict()
        """The one that was silent longest first."""
        self.lines: Counter[tuple[str, str]] = Counter()

    def find_needed(self) -> int | None:
        """Find the offset of the oldest record that would be read again after a crash; None if all events are sent."""
        return min((offset for log in self._logs.values() if (offset := log.find_needed()) is not None), default=None)

    def take(self, lines: list[ShippedLine], offset: int, now: float) -> Iterator[Event]:
        """Take the lines of one record and return their events; ``offset`` is the record's."""
        for line in lines:
            if not self._trusted.trusts(ContainerName(*line.container[:3])):
                # Before anything is kept about it: any container could print what a scheduler does.
                self.lines["", "untrusted"] += 1
                continue
            yield from self._take(line, offset, now)
        while len(self._logs) > MAX_CONTAINERS:
            yield from self._close(self._logs.popitem(last=False)[1])

    def settle(self, now: float) -> Iterator[Event]:
        """Settle the containers that were silent for ``IDLE_SECONDS``: return their events and close their logs."""
        while self._logs:
            container, log = next(iter(self._logs.items()))
            if now - log.last_record_at < IDLE_SECONDS:
                return
            del self._logs[container]
            yield from self._close(log)

    def _take(self, line: ShippedLine, offset: int, now: float) -> Iterator[Event]:
        log = self._logs.pop(line.container, None) or _OpenLog(now)
        log.last_record_at = now
        self._logs[line.container] = log
        text = _join_parts(log, line, offset)
        if text is None:
            return
        if reader := self._choose_reader(log, line.container.cluster or self._cluster, text):
            yield from self._read(log, reader, line, text)
            log.waits = {name: log.waits.get(name, offset) for name in reader.list_unfinished()}

    def _choose_reader(self, log: _OpenLog, cluster: str, text: bytes) -> WaitingReader | None:
        """Choose the log's reader by the first line that shows its source; None for a line that is not read."""
        if log.reader is None and log.undecided_lines < MAX_UNDECIDED_LINES and (source := find_source(text)):
            log.source, log.reader = source.name, source.create(cluster, NO_FACTS)
        if log.reader is None:
            log.undecided_lines += 1
            self.lines["", "other"] += 1
        return log.reader

    def _read(self, log: _OpenLog, reader: WaitingReader, line: ShippedLine, text: bytes) -> Iterator[Event]:
        before = dict(reader.counts.lines)
        container = line.container
        origin = Origin(
            str(container), line.time or datetime(1970, 1, 1, tzinfo=UTC), container.namespace, container.pod,
            container.container, line.labels,
        )  # fmt: skip
        position, end = LogPosition(0, log.next_number), LogPosition(0, log.next_number + 1)
        yield from reader.feed(Lines(origin, [text], position, [line.time], end))
        log.next_number += 1
        for outcome, count in reader.counts.lines.items():
            self.lines[log.source, outcome] += count - before[outcome]

    def _close(self, log: _OpenLog) -> Iterator[Event]:
        if log.reader:
            yield from log.reader.close()


def _join_parts(log: _OpenLog, line: ShippedLine, offset: int) -> bytes | None:
    """Join the line, without colours, with its earlier parts; None for a part that is not the last one."""
    text = _COLOURS.sub(b"", line.text) if b"\x1b" in line.text else line.text
    if line.is_partial:
        if not log.parts:
            log.parts_since = offset
        if log.parts_bytes < MAX_LINE_BYTES and len(log.parts) < MAX_PARTS:
            log.parts.append(text)
            log.parts_bytes += len(text)
        return None
    if log.parts:
        text = b"".join([*log.parts, text])
        log.parts.clear()
        log.parts_bytes = 0
    return text

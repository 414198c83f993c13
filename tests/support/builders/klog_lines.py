"""Lines of schedulers that log by klog, written by hand after the formats in their sources."""

from collections.abc import Iterable
from datetime import UTC, datetime

from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing
from ingest.reading.protocol import LogReader
from schemas.events import AttemptConcluded, Event

WRITTEN = datetime(2026, 3, 1, tzinfo=UTC)


def write_klog(message: str, file: str, second: int = 0, severity: str = "I") -> bytes:
    """Write a line of February 3 with klog's header."""
    return f"{severity}0203 10:00:{second:02}.000000       1 {file}:100] {message}".encode()


def read_lines(reader: LogReader, lines: Iterable[bytes]) -> list[Event]:
    """Read the lines to their end."""
    framing = Framing(Origin("log", WRITTEN))
    framed: list[Lines | None] = [framing.feed(b"\n".join(lines) + b"\n"), framing.close()]
    events = [event for part in framed if part for event in reader.feed(part)]
    return [*events, *reader.close()]


def list_ends(events: Iterable[Event]) -> list[AttemptConcluded]:
    """List the ends of attempts."""
    return [event for event in events if isinstance(event, AttemptConcluded)]

"""Logs of KAI-Scheduler as it wrote them (v0.13 console, v0.17 JSON), and what the reader makes of lines."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from engine.summaries.fold import AttemptFold
from ingest.lines.blocks import Lines, LogPosition, Origin
from ingest.readers.kai import KaiLog
from schemas.events import (
    AttemptEvent,
    AttemptSummarized,
    DeviceRow,
    DevicesJudged,
    Event,
    FindingReported,
    NodeStateChanged,
)
from tests.support.builders.node_states import build_lookup

CASES = Path(__file__).parents[2] / "unit" / "ingest" / "readers" / "kai" / "cases"
CONSOLE = "v0.13-console-log"
JSON = "v0.17-json-log"
TAGS = "seed002-debug-tags"

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
ORIGIN = Origin("kai.log", reference=datetime(2026, 11, 21, tzinfo=UTC))


def read_texts(case: str) -> list[bytes]:
    return _COLOUR.sub(b"", (CASES / f"{case}.log").read_bytes()).splitlines()


def block(lines: Sequence[bytes], number: int = 1) -> Lines:
    return Lines(ORIGIN, lines, LogPosition(0, number))


def read(lines: Sequence[bytes], reader: KaiLog | None = None) -> list[Event]:
    reader = reader or KaiLog()
    return [*reader.feed(block(lines)), *reader.close()]


def print_lines(*messages: str, session: str = "s1aaaa", action: str = "allocate") -> list[bytes]:
    """Print messages as v0.13 does, each with the file that prints it in front: ``framework/session.go: text``."""
    lines = []
    for message in messages:
        caller, _, text = message.partition(": ")
        lines += f"2026-11-21T03:13:34.561Z\tINFO\t{caller}:1\t[{session}] [{action}] {text}".encode().split(b"\n")
    return lines


def summarize_attempts(events: Sequence[Event]) -> list[AttemptSummarized]:
    folds: dict[str, AttemptFold] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    return [fold.summarize() for fold in folds.values()]


def list_findings(events: Sequence[Event]) -> list[FindingReported]:
    return [event for event in events if isinstance(event, FindingReported)]


def list_devices(events: Sequence[Event]) -> list[DeviceRow]:
    """List the rows of all records, with what the states report of their devices."""
    state_of = build_lookup(list_states(events))
    return [row for event in events if isinstance(event, DevicesJudged) for row in event.iterate_devices(state_of)]


def list_states(events: Sequence[Event]) -> list[NodeStateChanged]:
    return [event for event in events if isinstance(event, NodeStateChanged)]

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
from tests.support.builders.node_states import lookup

CASES = Path(__file__).parents[2] / "unit" / "ingest" / "readers" / "kai" / "cases"
CONSOLE = "v0.13-console-log"
JSON = "v0.17-json-log"
TAGS = "seed002-debug-tags"

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
ORIGIN = Origin("kai.log", reference=datetime(2026, 11, 21, tzinfo=UTC))


def texts(case: str) -> list[bytes]:
    return _COLOUR.sub(b"", (CASES / f"{case}.log").read_bytes()).splitlines()


def block(lines: Sequence[bytes], number: int = 1) -> Lines:
    return Lines(ORIGIN, lines, LogPosition(0, number))


def read(lines: Sequence[bytes], reader: KaiLog | None = None) -> list[Event]:
    reader = reader or KaiLog()
    return [*reader.feed(block(lines)), *reader.close()]


def printed(*messages: str, session: str = "s1aaaa", action: str = "allocate") -> list[bytes]:
    """Messages as v0.13 prints them, each with the file that prints it in front: ``framework/session.go: text``."""
    lines = []
    for message in messages:
        caller, _, text = message.partition(": ")
        lines += f"2026-11-21T03:13:34.561Z\tINFO\t{caller}:1\t[{session}] [{action}] {text}".encode().split(b"\n")
    return lines


def summaries(events: Sequence[Event]) -> list[AttemptSummarized]:
    folds: dict[str, AttemptFold] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    return [fold.summarize() for fold in folds.values()]


def findings(events: Sequence[Event]) -> list[FindingReported]:
    return [event for event in events if isinstance(event, FindingReported)]


def devices(events: Sequence[Event]) -> list[DeviceRow]:
    """The rows of all records, with what the states report of their devices."""
    state_of = lookup(states(events))
    return [row for event in events if isinstance(event, DevicesJudged) for row in event.each_device(state_of)]


def states(events: Sequence[Event]) -> list[NodeStateChanged]:
    return [event for event in events if isinstance(event, NodeStateChanged)]

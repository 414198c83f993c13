"""The interfaces of readers and sinks, and the counts by which a reader accounts for each line, with their summary."""

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ingest.lines.blocks import Lines
from schemas.events import Event

if TYPE_CHECKING:
    # Only a log that is explained has such facts: reading one into events does without their import.
    from engine.diagnosis.logged_facts import EarlierAttempts, LoggedFact, UnfinishedAttempt

NoteFact = Callable[["LoggedFact | UnfinishedAttempt | EarlierAttempts"], None]
"""Takes a fact of a line, or an attempt without a verdict."""
EVENT: Final = "event"
"""The line contributed to an event."""
NOISE: Final = "noise"
"""The line is known, and is not about a decision."""
UNKNOWN: Final = "unknown"
"""No grammar has the line; its shape is counted."""
UNTRUSTED: Final = "untrusted"
"""Not read: the configuration does not name who wrote it. Counted only by sources that need to be named."""
OUTCOMES: Final = (EVENT, NOISE, UNKNOWN)

MAX_SHAPES: Final = 1_000
"""Distinct shapes of unknown lines that are counted apart; further ones are counted together."""
OTHER_SHAPES: Final = "(other shapes)"
SHOWN_SHAPES: Final = 10
MAX_CHARACTERS: Final = 160
"""Characters of a shape; the rest of the line is cut."""

_HEADER: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d+ ([^\s\]]{1,80}):\d+\] ")
_VALUES: Final = re.compile(rb'=[{\[].*|="[^"]*"?')
_NUMBERS: Final = re.compile(rb"[0-9a-fA-F]*\d[0-9a-fA-F.]*")


@dataclass(slots=True)
class Counts:
    """Lines by outcome, and attempts by completeness. Its size does not depend on what is read."""

    lines: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    """By outcome."""
    events: int = 0
    attempts_complete: int = 0
    attempts_incomplete: int = 0
    """Attempts of which the log leaves a part open."""
    shapes: Counter[str] = field(default_factory=Counter)
    """Unknown lines by shape."""
    samples: dict[str, str] = field(default_factory=dict)
    """By shape, the beginning of its first line."""

    def add(self, outcome: str) -> None:
        """Count a line by its outcome, which is not unknown."""
        self.lines[outcome] = self.lines.get(outcome, 0) + 1

    def count_unknown(self, line: bytes) -> None:
        """Count a line that no grammar has, with its shape and a sample."""
        self.lines[UNKNOWN] += 1
        shape = derive_shape(line)
        # A log of another program may have a new shape on every line, and memory must not grow with it.
        if shape not in self.shapes and len(self.shapes) >= MAX_SHAPES:
            shape = OTHER_SHAPES
        self.shapes[shape] += 1
        if shape not in self.samples:
            # Shown on a terminal: control characters of a foreign log must not reach it.
            self.samples[shape] = to_printable(line[:300])


class LogReader(Protocol):
    """Lines in, events out, in bounded memory. The ids of the events follow from the text alone.

    So reading a log twice gives the same events with the same ids, and a checkpoint is ``save()`` together with the
    position in the log. A reader refuses the state of another version with a ``ValueError``; the log is then read from
    its start, which adds no duplicates.
    """

    @property
    def counts(self) -> Counts:
        """The lines so far, by outcome."""
        ...

    def feed(self, lines: Lines) -> Iterable[Event]:
        """Read lines, and return the events of the attempts that end with them or expect no further line."""
        ...

    def close(self) -> Iterable[Event]:
        """Return the events of everything that has not ended. The reader may be fed again afterwards."""
        ...

    def save(self) -> bytes:
        """Save everything that is remembered between two calls of ``feed``, except the counts."""
        ...

    def restore(self, saved: bytes) -> None:
        """Continue where ``save`` was called. Raises ``ValueError`` for what another version saved."""
        ...


class Sink(Protocol):
    """Takes the events of a reader."""

    async def send(self, events: Sequence[Event]) -> None:
        """Return when the events are stored safely."""
        ...


def collect_garbage_seldom() -> None:
    """Run the garbage collector rarely: it takes a seventh of the time, and readers make no reference cycles."""
    gc.set_threshold(200_000, 50, 100)


def report_counts(counts: Counts) -> str:
    """Report lines, events, attempts, and the most frequent shapes of lines that no grammar has."""
    lines = counts.lines
    complete, incomplete = counts.attempts_complete, counts.attempts_incomplete
    read = sum(lines[outcome] for outcome in OUTCOMES)
    text = [
        f"{read:,} lines: {lines[EVENT]:,} used, {lines[NOISE]:,} noise, {lines[UNKNOWN]:,} unknown",
        f"{counts.events:,} events: {complete:,} complete attempts, {incomplete:,} incomplete",
    ]
    if untrusted := lines.get(UNTRUSTED):
        text.insert(1, f"{untrusted:,} more were left out: the configuration does not name who wrote them")
    if counts.shapes:
        text.append(f"unknown lines, the {min(SHOWN_SHAPES, len(counts.shapes))} most frequent shapes:")
        text += [f"  {count:>9,}  {shape}" for shape, count in counts.shapes.most_common(SHOWN_SHAPES)]
    return "\n".join(text)


def derive_shape(line: bytes) -> str:
    """Derive the shape, which lines of one print statement share: values become ``…`` and numbers ``#``.

    The message of a structured klog line is kept.
    """
    # Cut first: expressions over a line of megabytes take seconds.
    line = line[: 4 * MAX_CHARACTERS]
    if header := _HEADER.match(line):
        line = header[1] + b" " + line[header.end() :]
    line = _VALUES.sub("=…".encode(), line)
    line = _NUMBERS.sub(b"#", line)
    return to_printable(line)[:MAX_CHARACTERS].strip()


def to_printable(text: bytes) -> str:
    """Replace the characters that would move a terminal's cursor or ring its bell."""
    return "".join(character if character.isprintable() else "·" for character in text.decode(errors="replace"))

"""What a reader promises, and how it accounts for every line it was fed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from ingest.lines.blocks import Lines
from ingest.lines.line_shapes import printable, shape_of
from schemas.events import Event

EVENT: Final = "event"
"""The line told something that went into an event."""
NOISE: Final = "noise"
"""The line is known, and says nothing about a decision."""
UNKNOWN: Final = "unknown"
"""No grammar knows the line; its shape is kept."""
OUTCOMES: Final = (EVENT, NOISE, UNKNOWN)

MAX_SHAPES: Final = 1_000
"""Distinct shapes of unknown lines that are told apart; those beyond are counted as one."""
OTHER_SHAPES: Final = "(other shapes)"


@dataclass(slots=True)
class Counts:
    """What became of the lines, and how the attempts ended. Bounded, whatever is read."""

    lines: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    """By outcome."""
    events: int = 0
    attempts_complete: int = 0
    attempts_incomplete: int = 0
    """Attempts of which the log does not say everything."""
    shapes: Counter[str] = field(default_factory=Counter)
    """Unknown lines by shape."""
    samples: dict[str, str] = field(default_factory=dict)
    """The first line of each shape, cut."""

    def unknown(self, line: bytes) -> None:
        """Count a line that no grammar knows, and keep its shape and a sample."""
        self.lines[UNKNOWN] += 1
        shape = shape_of(line)
        if shape not in self.shapes and len(self.shapes) >= MAX_SHAPES:
            shape = OTHER_SHAPES
        self.shapes[shape] += 1
        if shape not in self.samples:
            self.samples[shape] = printable(line[:300])


class LogReader(Protocol):
    """Lines in, events out, in bounded memory. The ids of the events follow from the text alone.

    So reading a log twice tells the same events with the same ids, and a checkpoint is ``save()`` beside the place that
    was reached. A reader that can't take back what another version saved says so by a ``ValueError``; the log is then
    read from its start, which does no harm.
    """

    @property
    def counts(self) -> Counts:
        """What became of the lines so far."""
        ...

    def feed(self, lines: Lines) -> Iterable[Event]:
        """What these lines tell. An attempt is told when its end is read, or when nothing more can be expected."""
        ...

    def close(self) -> Iterable[Event]:
        """What was begun and not ended, told as far as it is known. The reader may be fed again afterwards."""
        ...

    def save(self) -> bytes:
        """All that is remembered between two calls of ``feed``, without the counts."""
        ...

    def restore(self, saved: bytes) -> None:
        """Go on where ``save`` was called. Raises ``ValueError`` for what another version saved."""
        ...

"""Looks up the spelling of a line in ``grammar.toml`` by the first bytes of its message."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter

NOISE: Final = "noise"

_SOURCE: Final = Path(__file__).with_name("grammar.toml")
LONG: Final = 12
SHORT: Final = 4
"""Bytes of the lookup keys: most spellings differ within ``LONG`` bytes, and none is shorter than ``SHORT``."""


class Spelling(BaseModel):
    """One line of HAMi's log, as some versions write it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: str
    """The meaning of the line; ``noise`` is a line that is not about a decision."""
    begins: list[str]
    level: int
    """The -v of klog from which on the line is printed."""
    since: str = ""
    until: str = ""
    code: str = ""
    """The reason code, for the refusal of a device."""
    cause: bool = False
    """True for a line that holds a cause without being a verdict."""
    samples: list[str]


Starts = dict[bytes, list[tuple[bytes, Spelling]]]
"""By the first bytes of the message, the beginnings to try, longest first."""


class Grammar(NamedTuple):
    """``long`` holds the beginnings of at least ``LONG`` bytes; they are tried before those of ``short``."""

    long: Starts
    short: Starts

    def find_spelling(self, line: bytes, index: int) -> Spelling | None:
        """Find the spelling of the message that begins at ``index``; None for a message of no known version."""
        for start, find_spelling in self.long.get(line[index : index + LONG], ()):
            if line.startswith(start, index):
                return find_spelling
        for start, find_spelling in self.short.get(line[index : index + SHORT], ()):
            if line.startswith(start, index):
                return find_spelling
        return None


@cache
def load_spellings() -> tuple[Spelling, ...]:
    table = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return TypeAdapter(tuple[Spelling, ...]).validate_python(table["line"])


@cache
def load_grammar() -> Grammar:
    """Load each beginning with and without a quote before it: klog quotes only structured messages."""
    long: Starts = {}
    short: Starts = {}
    for spelling in load_spellings():
        for begin in spelling.begins:
            for start in (begin.encode(), b'"' + begin.encode()):
                starts, size = (long, LONG) if len(start) >= LONG else (short, SHORT)
                starts.setdefault(start[:size], []).append((start, spelling))
    for choices in (*long.values(), *short.values()):
        # Longest first: one beginning may be the beginning of another.
        choices.sort(key=lambda choice: len(choice[0]), reverse=True)
    return Grammar(long, short)

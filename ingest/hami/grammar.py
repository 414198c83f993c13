"""The spellings of ``grammar.toml``, ready to be looked up by how a message begins."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

NOISE: Final = "noise"

_SOURCE: Final = Path(__file__).with_name("grammar.toml")
_KEY: Final = 5
"""Bytes of the message that are looked up; no spelling is shorter with its quote."""


class Spelling(BaseModel):
    """One line of HAMi's log, as some versions write it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    says: str
    """What it tells; ``noise`` is a line that tells nothing about a decision."""
    begins: list[str]
    level: int
    """klog's -v from which on it is printed."""
    since: str = ""
    until: str = ""
    code: str = ""
    """Of a refused device: why."""
    samples: list[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """``starts[message[:_KEY]]`` are the beginnings to try, longest first."""

    starts: dict[bytes, list[tuple[bytes, Spelling]]]

    def spelling(self, message: bytes) -> Spelling | None:
        """What a message is; None for one that no version is known to write."""
        for start, spelling in self.starts.get(message[:_KEY], ()):
            if message.startswith(start):
                return spelling
        return None


@cache
def spellings() -> tuple[Spelling, ...]:
    table = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return TypeAdapter(tuple[Spelling, ...]).validate_python(table["line"])


@cache
def grammar() -> Grammar:
    """Structured messages stand in quotes, older and formatted ones do not: both are looked up."""
    starts: dict[bytes, list[tuple[bytes, Spelling]]] = {}
    for spelling in spellings():
        for begin in spelling.begins:
            for start in (begin.encode(), b'"' + begin.encode()):
                starts.setdefault(start[:_KEY], []).append((start, spelling))
    for choices in starts.values():
        choices.sort(key=lambda choice: len(choice[0]), reverse=True)
    return Grammar(starts)

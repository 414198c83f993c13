"""What a message says, as the grammar beside this module knows it."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ingest.kai.framing import Message, time_of

GRAMMAR: Final[Mapping[str, Any]] = tomllib.loads((Path(__file__).parent / "grammar.toml").read_text("utf-8"))

_GPUS: Final = re.compile(r"(?:GPU|Gpus): (?:(?P<devices>\d+) X )?(?P<share>\d+(?:\.\d+)?)")
_VECTOR_GPUS: Final = 2
"""Requests of v0.17 are vectors of milli-CPUs, bytes, GPUs and pods."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the grammar."""

    kind: str
    level: int
    pattern: re.Pattern[str]
    is_long: bool
    """Its text goes on in the lines behind."""


class Sentence:
    """What a line of the grammar says once: ``parts`` are those that its pattern names."""

    __slots__ = ("line", "parts", "session", "time")

    def __init__(self, line: Line, time: datetime, session: str, parts: re.Match[str]) -> None:
        self.line, self.time, self.session, self.parts = line, time, session, parts

    def named(self, name: str) -> str:
        """A part that not every sentence has; empty where this one has none."""
        return self.parts.groupdict("").get(name, "")

    @property
    def text(self) -> str:
        """The whole message, word for word."""
        return self.parts.string


def _by_start() -> dict[tuple[bytes, ...], list[Line]]:
    """By the file that prints a line, and its message's first word."""
    known: dict[tuple[bytes, ...], list[Line]] = {}
    for line in GRAMMAR["line"]:
        # ASCII: what is not is decoded as well as it can be, and is never a space or a letter of KAI's own.
        pattern = re.compile(line["pattern"], re.ASCII)
        entry = Line(line["kind"], line["level"], pattern, is_long=line["kind"] in _LONG_KINDS)
        words = {sample.split(maxsplit=1)[0].encode() for sample in line["samples"]} | _alternatives(line["pattern"])
        for caller in line["callers"]:
            for word in words:
                known.setdefault((caller.encode(), word), []).append(entry)
    return known


def _alternatives(pattern: str) -> set[bytes]:
    """The first words of a pattern that begins with a choice: ``(?P<moment>About to add|Added|…)``."""
    choice = re.match(r"\(\?P<\w+>([A-Za-z |]+)\)", pattern)
    return {each.split()[0].encode() for each in choice[1].split("|")} if choice else set()


_LONG_KINDS: Final = frozenset({"fit error", "fit error in full", "job fit error"})
LINES: Final = _by_start()
NOISE: Final = frozenset(folder.encode() for folder in GRAMMAR["noise"]["callers"])
_WORD: Final = re.compile(rb"\w+")


def sentence_of(message: Message) -> Sentence | None:
    """None where the file prints this, and it says nothing about where a pod can go, or nothing about when."""
    word = _WORD.match(message.line, message.start)
    known = LINES.get((message.caller, word[0]), ()) if word else ()
    found = matched(known, message.text.decode(errors="replace")) if known else None
    if found is None or (time := time_of(message.stamp)) is None:
        return None
    return Sentence(found[0], time, message.session, found[1])


def matched(known: Sequence[Line], text: str) -> tuple[Line, re.Match[str]] | None:
    """Which of the lines that begin like the text it is."""
    for line in known:
        if found := line.pattern.match(text):
            return line, found
    return None


@lru_cache(maxsize=4096)
def knows_folder(caller: bytes) -> bool:
    """Is it one of the scheduler's own files?"""
    return caller[: caller.find(b"/") + 1] in NOISE


@dataclass(frozen=True, slots=True)
class Gpus:
    """What is asked for: so many devices, and which share of each (1 is the whole card)."""

    devices: int
    share: float


@lru_cache(maxsize=4096)
def gpus_of(resources: str) -> Gpus | None:
    """The GPUs in a request or a node's resources; None where nothing is said about them.

    A request for an amount of memory is printed as 0 GPUs.
    """
    if found := _GPUS.search(resources):
        return _gpus(float(found["share"]), int(found["devices"] or 0))
    numbers = resources.strip("[]<>").split()
    try:
        return _gpus(float(numbers[_VECTOR_GPUS]), 0) if len(numbers) > _VECTOR_GPUS else None
    except (ValueError, OverflowError):
        return None


def _gpus(amount: float, devices: int) -> Gpus | None:
    if not 0 <= amount < 1e6:
        return None
    if devices:
        return Gpus(min(devices, 10_000), min(amount, 1.0))
    return Gpus(int(amount), 1.0) if amount >= 1 else Gpus(1 if amount else 0, amount)

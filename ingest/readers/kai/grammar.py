"""Parses messages by the patterns in ``grammar.toml``."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ingest.readers.kai.framing import LogMessage, time_of

GRAMMAR: Final[Mapping[str, Any]] = tomllib.loads((Path(__file__).parent / "grammar.toml").read_text("utf-8"))

_GPUS: Final = re.compile(r"(?:GPU|Gpus): (?:(?P<devices>\d+) X )?(?P<share>\d+(?:\.\d+)?)")
_VECTOR_GPUS: Final = 2
"""Position in a vector: v0.17 prints resources as ``[milli-CPUs bytes GPUs pods]``."""


@dataclass(frozen=True, slots=True)
class MessagePattern:
    """An entry of the grammar."""

    kind: str
    level: int
    pattern: re.Pattern[str]
    is_long: bool
    """Its text may continue on the following lines."""


class ParsedMessage:
    """A message that matched ``pattern``; ``parts`` are the named groups of the match."""

    # Not a dataclass: one is made for every line that matters, and this is the cheapest way.
    __slots__ = ("parts", "pattern", "session", "time")

    def __init__(self, pattern: MessagePattern, time: datetime, session: str, parts: re.Match[str]) -> None:
        self.pattern, self.time, self.session, self.parts = pattern, time, session, parts

    def optional(self, name: str) -> str:
        """A part that not every pattern has; empty where this one has none."""
        return self.parts.groupdict("").get(name, "")

    @property
    def text(self) -> str:
        """The whole message, word for word."""
        return self.parts.string


def _by_start() -> dict[tuple[bytes, ...], list[MessagePattern]]:
    """The patterns by the file that prints the message and by its first word."""
    known: dict[tuple[bytes, ...], list[MessagePattern]] = {}
    for line in GRAMMAR["line"]:
        # ASCII: invalid UTF-8 is replaced when the text is decoded, and must not match as a letter or a space.
        pattern = re.compile(line["pattern"], re.ASCII)
        entry = MessagePattern(line["kind"], line["level"], pattern, is_long=line["kind"] in _LONG_KINDS)
        words = {sample.split(maxsplit=1)[0].encode() for sample in line["samples"]} | _alternatives(line["pattern"])
        for caller in line["callers"]:
            for word in words:
                known.setdefault((caller.encode(), word), []).append(entry)
    return known


def _alternatives(pattern: str) -> set[bytes]:
    """The first words of a pattern that begins with alternatives: ``(?P<moment>About to add|Added|…)``."""
    choice = re.match(r"\(\?P<\w+>([A-Za-z |]+)\)", pattern)
    return {alternative.split()[0].encode() for alternative in choice[1].split("|")} if choice else set()


_LONG_KINDS: Final = frozenset({"fit error", "fit error in full", "job fit error"})
PATTERNS: Final = _by_start()
NOISE_FOLDERS: Final = frozenset(folder.encode() for folder in GRAMMAR["noise"]["callers"])
_WORD: Final = re.compile(rb"\w+")


def parse(message: LogMessage) -> ParsedMessage | None:
    """None for a message that matches no pattern, or whose time can't be read."""
    word = _WORD.match(message.line, message.start)
    known = PATTERNS.get((message.caller, word[0]), ()) if word else ()
    found = matched(known, message.text.decode(errors="replace")) if known else None
    if found is None or (time := time_of(message.stamp)) is None:
        return None
    return ParsedMessage(found[0], time, message.session, found[1])


def matched(patterns: Sequence[MessagePattern], text: str) -> tuple[MessagePattern, re.Match[str]] | None:
    """The first of the patterns that the text matches, with the match."""
    for pattern in patterns:
        if found := pattern.pattern.match(text):
            return pattern, found
    return None


@lru_cache(maxsize=4096)
def is_kai_file(caller: bytes) -> bool:
    """True for a file of the scheduler itself, such as ``framework/session.go``."""
    return caller[: caller.find(b"/") + 1] in NOISE_FOLDERS


@dataclass(frozen=True, slots=True)
class Gpus:
    """So many devices, and which share of each (1 is a whole device)."""

    devices: int
    share: float


@lru_cache(maxsize=4096)
def gpus_of(resources: str) -> Gpus | None:
    """The GPUs in a request or in a node's resources; None where the text names none.

    KAI prints a request for an amount of GPU memory as 0 GPUs.
    """
    if found := _GPUS.search(resources):
        return _gpus(float(found["share"]), int(found["devices"] or 0))
    # v0.17: a bare vector. A request for memory has a fraction or 0 in the place of GPUs.
    numbers = resources.strip("[]<>").split()
    try:
        return _gpus(float(numbers[_VECTOR_GPUS]), 0) if len(numbers) > _VECTOR_GPUS else None
    except (ValueError, OverflowError):
        return None


def _gpus(amount: float, devices: int) -> Gpus | None:
    # A mutated number must not become a request for a million GPUs.
    if not 0 <= amount < 1e6:
        return None
    if devices:
        return Gpus(min(devices, 10_000), min(amount, 1.0))
    return Gpus(int(amount), 1.0) if amount >= 1 else Gpus(1 if amount else 0, amount)

"""Parses messages by the patterns in ``grammar.toml``."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ingest.readers.kai.framing import LogMessage, parse_time

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

    def get_part(self, name: str) -> str:
        """Get a part that not every pattern has; empty if this pattern has none."""
        return self.parts.groupdict("").get(name, "")

    @property
    def text(self) -> str:
        """The whole message, word for word."""
        return self.parts.string


def _index_patterns() -> dict[tuple[bytes, ...], list[MessagePattern]]:
    """Index the patterns by the file that prints the message and by its first word."""
    patterns: dict[tuple[bytes, ...], list[MessagePattern]] = {}
    for line in GRAMMAR["line"]:
        # ASCII: invalid UTF-8 is replaced when the text is decoded, and must not match as a letter or a space.
        pattern = re.compile(line["pattern"], re.ASCII)
        entry = MessagePattern(line["kind"], line["level"], pattern, is_long=line["kind"] in _LONG_KINDS)
        words = {sample.split(maxsplit=1)[0].encode() for sample in line["samples"]} | _list_first_words(
            line["pattern"]
        )
        for caller in line["callers"]:
            for word in words:
                patterns.setdefault((caller.encode(), word), []).append(entry)
    return patterns


def _list_first_words(pattern: str) -> set[bytes]:
    """List the first words of a pattern that begins with alternatives: ``(?P<moment>About to add|Added|…)``."""
    choice = re.match(r"\(\?P<\w+>([A-Za-z |]+)\)", pattern)
    return {alternative.split()[0].encode() for alternative in choice[1].split("|")} if choice else set()


_LONG_KINDS: Final = frozenset(
    {"fit error", "fit error in full", "job fit error", "eviction reason", "eviction requested"}
)
PATTERNS: Final = _index_patterns()
NOISE_FOLDERS: Final = frozenset(folder.encode() for folder in GRAMMAR["noise"]["callers"])
_WORD: Final = re.compile(rb"\w+")


def parse(message: LogMessage) -> ParsedMessage | None:
    """Parse a message; None if it matches no pattern, or if its time can't be read."""
    word = _WORD.match(message.line, message.start)
    candidates = PATTERNS.get((message.caller, word[0]), ()) if word else ()
    hit = find_match(candidates, message.text.decode(errors="replace")) if candidates else None
    if hit is None or (time := parse_time(message.stamp)) is None:
        return None
    return ParsedMessage(hit[0], time, message.session, hit[1])


def find_match(patterns: Sequence[MessagePattern], text: str) -> tuple[MessagePattern, re.Match[str]] | None:
    """Find the first pattern that the text matches, with the match."""
    for pattern in patterns:
        if match := pattern.pattern.match(text):
            return pattern, match
    return None


@lru_cache(maxsize=4096)
def is_kai_file(caller: bytes) -> bool:
    """Tell whether a file is the scheduler's, such as ``framework/session.go``."""
    return caller[: caller.find(b"/") + 1] in NOISE_FOLDERS


@dataclass(frozen=True, slots=True)
class Gpus:
    """A number of devices, and the share of each (1 is a whole device)."""

    devices: int
    share: float


@lru_cache(maxsize=4096)
def parse_gpus(resources: str) -> Gpus | None:
    """Parse the GPUs in a request or in a node's resources; None if the text names none.

    KAI prints a request for an amount of GPU memory as 0 GPUs.
    """
    if match := _GPUS.search(resources):
        return _create_gpus(float(match["share"]), int(match["devices"] or 0))
    # v0.17: a bare vector. A request for memory has a fraction or 0 in the place of GPUs.
    numbers = resources.strip("[]<>").split()
    try:
        return _create_gpus(float(numbers[_VECTOR_GPUS]), 0) if len(numbers) > _VECTOR_GPUS else None
    except (ValueError, OverflowError):
        return None


def _create_gpus(amount: float, devices: int) -> Gpus | None:
    # A mutated number must not become a request for a million GPUs.
    if not 0 <= amount < 1e6:
        return None
    if devices:
        return Gpus(min(devices, 10_000), min(amount, 1.0))
    return Gpus(int(amount), 1.0) if amount >= 1 else Gpus(1 if amount else 0, amount)

"""What the source of an attempt leaves open (``not_reported``), in the reader's language."""

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

_SOURCE: Final = Path(__file__).with_name("source_gaps.toml")


@cache
def source_gaps() -> MappingProxyType[str, str]:
    """Phrase of a reader to the same in Chinese."""
    return MappingProxyType(tomllib.loads(_SOURCE.read_text(encoding="utf-8")))


def source_gap(phrase: str, language: str) -> str:
    """The phrase itself in English, and where a newer reader wrote it."""
    return source_gaps().get(phrase, phrase) if language == "zh" else phrase

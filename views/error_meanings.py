"""What the codes of errors mean, in English and Chinese. The errors' own words, which name the cause, are English."""

import tomllib
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

OTHER: Final = "Unknown"
"""The code whose meaning is that of every code of a newer API."""
_SOURCE: Final = Path(__file__).with_name("error_meanings.toml")


@cache
def error_meanings() -> MappingProxyType[str, dict[str, str]]:
    """Code to its meaning in each language (``en``, ``zh``)."""
    return MappingProxyType(tomllib.loads(_SOURCE.read_text(encoding="utf-8")))


def meaning_of(code: str, language: str) -> str:
    """What an error of this code means and what to do next, in one sentence."""
    known = error_meanings()
    return known.get(code, known[OTHER])[language]

"""What the codes of errors mean, in English and Chinese. The errors' own words, which name the cause, are English."""

from types import MappingProxyType
from typing import Final

from page.views.tables import table

OTHER: Final = "Unknown"
"""The code whose meaning is that of every code of a newer API."""


def error_meanings() -> MappingProxyType[str, dict[str, str]]:
    """Code to its meaning in each language (``en``, ``zh``)."""
    return table("error_meanings")


def meaning_of(code: str, language: str) -> str:
    """What an error of this code means and what to do next, in one sentence."""
    known = error_meanings()
    return known.get(code, known[OTHER])[language]

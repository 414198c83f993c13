"""Words for outcomes, constraints, meanings of error codes and gaps of a source, most from the TOML files here."""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

STATUS_WORDS: Final = {"succeeded": "placed", "failed": "refused", "pending": "undecided"}
"""Words of people for the outcomes of attempts, by the API's; the page's texts have the same, as a test shows."""


@cache
def load_table(name: str) -> MappingProxyType[str, Any]:
    """Load ``name.toml``."""
    source = Path(__file__).with_name(f"{name}.toml")
    return MappingProxyType(tomllib.loads(source.read_text(encoding="utf-8")))


def load_constraints() -> MappingProxyType[str, dict[str, str]]:
    """Load the name of each constraint of an answer, by language (``en``, ``zh``)."""
    return load_table("constraints")


def write_exclusion(excluded_by: Sequence[str] | None, language: str) -> str:
    """Write the sentence; empty without constraints. A constraint of a newer API is named as the API names it."""
    if not excluded_by:
        return ""
    constraints = load_constraints()
    names = [
        constraints[constraint][language] if constraint in constraints else constraint for constraint in excluded_by
    ]
    if language == "zh":
        return f"仅此一项就使它无处可放：{names[0]}。" if len(names) == 1 else _join_zh(names)
    return f"A single constraint keeps it from every node: {names[0]}." if len(names) == 1 else _join_en(names)


def _join_en(names: Sequence[str]) -> str:
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Only together these keep it from every node, and without any one of them it would fit somewhere: {listed}."


def _join_zh(names: Sequence[str]) -> str:
    return f"以下各项合在一起才使它无处可放，去掉其中任何一项即可放置：{'、'.join(names)}。"


OTHER: Final = "Unknown"
"""Code whose meaning every code of a newer API has."""


def load_error_meanings() -> MappingProxyType[str, dict[str, str]]:
    """Load the meaning of each code, by language (``en``, ``zh``)."""
    return load_table("error_meanings")


def get_meaning(code: str, language: str) -> str:
    """Return the meaning of an error code and the next step, in one sentence."""
    meanings = load_error_meanings()
    return meanings.get(code, meanings[OTHER])[language]


def load_source_gaps() -> MappingProxyType[str, str]:
    """Load the Chinese text of each reader's phrase."""
    return load_table("source_gaps")


def translate_gap(phrase: str, language: str) -> str:
    """Translate the phrase; English and phrases of a newer reader stay."""
    return load_source_gaps().get(phrase, phrase) if language == "zh" else phrase

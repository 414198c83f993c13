"""Texts of the page in English and Chinese, and the choice of the reader's language."""

import tomllib
from functools import cache
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, Literal

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")
_SOURCE: Final = Path(__file__).with_name("texts.toml")


class _WithPlural(Formatter):
    """Formatter that writes ``{count:pod|pods}`` as ``1 pod`` or ``2 pods``."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        singular, is_plural, plural = format_spec.partition("|")
        return (
            f"{value} {singular if value == 1 else plural}" if is_plural else super().format_field(value, format_spec)
        )


_FORMATTER: Final = _WithPlural()


@cache
def load_texts(language: Language) -> MappingProxyType[str, str]:
    """Load the texts by key (``pending.title``)."""
    tables = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return MappingProxyType(
        {f"{part}.{name}": text[language] for part, table in tables.items() for name, text in table.items()}
    )


def get_text(language: Language, key: str, **values: object) -> str:
    """Write the text with ``values`` in it. Raises ``KeyError`` for a key that ``texts.toml`` does not have."""
    template = load_texts(language)[key]
    return _FORMATTER.vformat(template, (), values) if values else template


def choose_language(requested: str | None, accept_language: str) -> Language:
    """Choose the ``requested`` language, else the one of the two that the header ``Accept-Language`` prefers, else
    English."""
    if requested is not None:
        return "zh" if requested.lower().startswith("zh") else "en"
    return max(_parse_accepted(accept_language), default=(0.0, 0, "en"))[2]


def _parse_accepted(header: str) -> list[tuple[float, int, Language]]:
    """Parse quality, order (greater is earlier) and language of each part that names one of ours."""
    languages: list[tuple[float, int, Language]] = []
    for index, part in enumerate(header[:500].split(",")):
        tag, _, quality = part.partition(";")
        name = tag.strip().lower().split("-")[0]
        language: Language | None = "zh" if name == "zh" else "en" if name == "en" else None
        if language:
            languages.append((_parse_quality(quality), -index, language))
    return languages


def _parse_quality(text: str) -> float:
    try:
        return float(text.strip().removeprefix("q=")) if text.strip() else 1.0
    except ValueError:
        return 0.0

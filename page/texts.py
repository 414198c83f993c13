"""The texts of the page in English and Chinese, and which of the two a reader gets."""

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
    """Writes ``{count:pod|pods}`` as ``1 pod`` or ``2 pods``."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        one, is_plural, many = format_spec.partition("|")
        return f"{value} {one if value == 1 else many}" if is_plural else super().format_field(value, format_spec)


_FORMATTER: Final = _WithPlural()


@cache
def texts(language: Language) -> MappingProxyType[str, str]:
    """Key (``pending.title``) to text."""
    tables = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return MappingProxyType(
        {f"{part}.{name}": text[language] for part, table in tables.items() for name, text in table.items()}
    )


def text(language: Language, key: str, **values: object) -> str:
    """The text with ``values`` in it. Raises ``KeyError`` for a key that ``texts.toml`` does not have."""
    found = texts(language)[key]
    return _FORMATTER.vformat(found, (), values) if values else found


def chosen_language(asked: str | None, accept_language: str) -> Language:
    """``asked``, else the one of the two that the header ``Accept-Language`` prefers, else English."""
    if asked is not None:
        return "zh" if asked.lower().startswith("zh") else "en"
    return max(_accepted(accept_language), default=(0.0, 0, "en"))[2]


def _accepted(header: str) -> list[tuple[float, int, Language]]:
    """Quality, order (greater is earlier) and language of each part that names one of ours."""
    found: list[tuple[float, int, Language]] = []
    for place, part in enumerate(header[:500].split(",")):
        tag, _, quality = part.partition(";")
        name = tag.strip().lower().split("-")[0]
        language: Language | None = "zh" if name == "zh" else "en" if name == "en" else None
        if language:
            found.append((_quality(quality), -place, language))
    return found


def _quality(text: str) -> float:
    try:
        return float(text.strip().removeprefix("q=")) if text.strip() else 1.0
    except ValueError:
        return 0.0

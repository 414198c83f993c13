"""What the source of an attempt leaves open (``not_reported``), in the reader's language."""

from types import MappingProxyType

from page.views.tables import table


def source_gaps() -> MappingProxyType[str, str]:
    """Phrase of a reader to the same in Chinese."""
    return table("source_gaps")


def source_gap(phrase: str, language: str) -> str:
    """The phrase itself in English, and where a newer reader wrote it."""
    return source_gaps().get(phrase, phrase) if language == "zh" else phrase

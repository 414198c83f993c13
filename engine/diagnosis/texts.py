"""The texts of the diagnosis in both languages, from ``texts.toml``, and how numbers are written in them."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engine.diagnosis.facts import Unknown
from engine.diagnosis.outcome import FoundObstacle, Word
from schemas.answers.diagnosis import Actor, InBothLanguages
from schemas.reasons import Language, read_catalogue

Kind = Literal["gate", "amount", "repair", "count", "constraint", "registration", "last"]
"""The most important first, as ``engine.diagnosis.obstacle`` chooses."""

_SOURCE: Final = Path(__file__).with_name("texts.toml")
_LANGUAGES: Final[tuple[Language, Language]] = ("en", "zh")
_STOP: Final = {"en": ".", "zh": "。"}


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Phrase(_Entry):
    en: str
    zh: str


class ObstacleTexts(_Entry):
    """``likely_cause`` and ``remedy`` of a reason code are in the catalogue of reasons."""

    sentence: str
    likely_cause: str = ""
    remedy: str = ""


class ObstacleEntry(_Entry):
    kind: Kind
    who: tuple[Actor, ...]
    en: ObstacleTexts
    zh: ObstacleTexts
    clauses: dict[str, Phrase] = Field(default_factory=dict)


class DiagnosisTexts(_Entry):
    states: dict[str, Phrase]
    phrases: dict[str, Phrase]
    questions: dict[str, Phrase]
    unknown: dict[str, Phrase]
    subjects: dict[str, Phrase]
    obstacles: dict[str, ObstacleEntry]
    words: dict[str, str]
    """How a scheduler's reason begins, to an obstacle."""
    errors: dict[str, str]
    """The same of errors that end an attempt."""


@cache
def texts() -> DiagnosisTexts:
    return TypeAdapter(DiagnosisTexts).validate_python(tomllib.loads(_SOURCE.read_text(encoding="utf-8")))


class _Number(int):
    """``{n}`` is written with commas; ``{n:node|nodes}`` is ``node`` where n is 1."""

    def __format__(self, words: str) -> str:
        one, is_choice, many = words.partition("|")
        if not is_choice:
            return f"{int(self):,}"
        return one if self == 1 else many


class _InLanguage(dict[str, object]):
    """The words of a sentence; a word that is itself a phrase is written in the same language."""

    def __init__(self, words: Mapping[str, Word], language: Language) -> None:
        super().__init__({name: _written(word, language) for name, word in words.items()})


def _written(word: Word, language: Language) -> object:
    if isinstance(word, InBothLanguages):
        return getattr(word, language)
    return _Number(word) if isinstance(word, int) else word


def phrase(name: str, **words: Word) -> InBothLanguages:
    """A part of a sentence."""
    return _filled(texts().phrases[name], words)


def question(name: str) -> InBothLanguages:
    return _filled(texts().questions[name], {})


def state_sentence(state: str, words: Mapping[str, Word]) -> InBothLanguages:
    return _filled(texts().states[state], words, is_sentence=True)


def unknown_text(unknown: Unknown) -> InBothLanguages:
    subject = _filled(texts().subjects[unknown.subject], {})
    return _filled(texts().unknown[unknown.cause], {"subject": subject})


def _filled(found: Phrase, words: Mapping[str, Word], *, is_sentence: bool = False) -> InBothLanguages:
    en, zh = (getattr(found, language).format_map(_InLanguage(words, language)) for language in _LANGUAGES)
    return InBothLanguages(en=en + "." * is_sentence, zh=zh + "。" * is_sentence)


def sentence(found: FoundObstacle) -> InBothLanguages:
    """What is the matter, with its numbers."""
    entry = texts().obstacles[found.code]
    parts = {}
    for language in _LANGUAGES:
        templates = [
            getattr(entry, language).sentence,
            *(getattr(entry.clauses[clause], language) for clause in found.clauses),
        ]
        words = _InLanguage(found.words, language)
        text = "".join(template.format_map(words) for template in templates) + _STOP[language]
        # A name keeps its small letter at the beginning of a sentence.
        parts[language] = f"The {text[4:]}" if text.startswith("the ") else text
    return InBothLanguages(**parts)


def likely_cause(found: FoundObstacle) -> InBothLanguages:
    return _explained(found, "likely_cause")


def remedy(found: FoundObstacle, namespace: str, pod: str) -> InBothLanguages:
    """Its commands are about this pod, and about the node where it is a single one."""
    names = {"<namespace>": namespace, "<pod>": pod}
    if len(found.nodes) == 1:
        names["<node>"] = found.nodes[0]
    text = _explained(found, "remedy")
    return InBothLanguages(en=_named(text.en, names), zh=_named(text.zh, names))


def _named(text: str, names: Mapping[str, str]) -> str:
    for place, name in names.items():
        text = text.replace(place, name)
    return text


def _explained(found: FoundObstacle, field: str) -> InBothLanguages:
    entry, reason = texts().obstacles[found.code], read_catalogue().get(found.code)
    parts = {}
    for language in _LANGUAGES:
        own = getattr(getattr(entry, language), field).format_map(_InLanguage(found.words, language))
        # The catalogue's texts hold braces of their own (jsonpath), and no places to fill.
        parts[language] = own or (getattr(getattr(reason, language), field) if reason else "")
    return InBothLanguages(**parts)


def who_acts(found: FoundObstacle) -> list[Actor]:
    return list(texts().obstacles[found.code].who)


def actors_of(code: str) -> list[Actor]:
    """Who can do something about a reason code; none for one that is no obstacle of its own."""
    entry = texts().obstacles.get(code)
    return list(entry.who) if entry else []


def kind_of(code: str) -> Kind:
    return texts().obstacles[code].kind


def obstacle_of_word(reason: str) -> tuple[str, str]:
    """The obstacle that a scheduler's reason for nodes is about, and the rest of the reason: a taint, a resource."""
    return _by_beginning(reason, texts().words, "RefusedInOtherWords")


def obstacle_of_error(error: str) -> str:
    """The same of an error that ended an attempt."""
    return _by_beginning(error, texts().errors, "FilterError")[0]


def _by_beginning(text: str, table: Mapping[str, str], otherwise: str) -> tuple[str, str]:
    # Reason codes are obstacles of their own name.
    if text in read_catalogue():
        return text, ""
    begin = next((begin for begin in table if text.startswith(begin)), None)
    return (otherwise, text) if begin is None else (table[begin], text.removeprefix(begin).strip(" .:"))

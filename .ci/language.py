"""The words of `.ci/language.toml`, and the questions that the lints ask about them."""

import re
import tomllib

from sources import ROOT

LANGUAGE = tomllib.loads((ROOT / ".ci" / "language.toml").read_text("utf-8"))
VERBS = frozenset(LANGUAGE["verbs"].split())
NOUNS = frozenset(LANGUAGE["nouns"].split())
PREFIXES = frozenset(LANGUAGE["prefixes"].split())
QUESTIONS = frozenset(LANGUAGE["questions"].split())
CLAUSES = frozenset(LANGUAGE["clauses"].split())
OPENINGS = tuple(LANGUAGE["openings"])
MUTATORS = frozenset(LANGUAGE["mutators"].split())
VAGUE: dict[str, str] = LANGUAGE["vague"]
PROTOCOLS = frozenset(LANGUAGE["protocols"])
EXCEPTIONS = frozenset(LANGUAGE["exceptions"])

WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def parse_first_word(text: str) -> str:
    """Parse the word that ``text`` begins with, in lower case; empty if it begins with code, a number or a sign."""
    match = WORD.match(text.lstrip())
    return match[0].lower() if match else ""


def split_name(name: str) -> list[str]:
    """Split an identifier into its words, in lower case: `_JudgedNodes` has `judged` and `nodes`."""
    return [part.lower() for part in PART.findall(name)]


def list_stems(word: str) -> set[str]:
    """List what ``word`` may be the plural or the third person of: `copies` of `copie`, `copi` and `copy`."""
    endings = {"s": "", "es": "", "ies": "y"}
    return {word.removesuffix(ending) + stem for ending, stem in endings.items() if word.endswith(ending)}


def is_third_person(word: str) -> bool:
    return word not in VERBS and not VERBS.isdisjoint(list_stems(word))

"""Checks the words of the code and the pages against `.ci/words.toml`: `python .ci/words.py [PATH ...]`.

Names are checked part by part, sentences word by word; what stands in backticks or double quotes inside a sentence is
somebody else's spelling and is left alone. A class name is defined once outside tests.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from language import split_name
from sources import ROOT, Definition, Violation, check_files, list_classes, list_tracked, run

WORDS = tomllib.loads((ROOT / ".ci" / "words.toml").read_text("utf-8"))
NAMES: dict[str, str] = WORDS["names"]
CLASSES: dict[str, str] = WORDS["classes"]
QUOTES: dict[str, str] = WORDS["quotes"]
PROSE = [(re.compile(rf"\b{word}\b", re.IGNORECASE), word, term) for word, term in WORDS["prose"].items()]

QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|“[^”]*”|'[^' ]+'|https?://\S+|\{[^}]*\}", re.DOTALL)
BLOCK = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$", re.DOTALL | re.MULTILINE)


def list_files(paths: Sequence[str]) -> list[str]:
    """List the tracked Python files and pages below ``paths`` without those that quote others."""
    files = list_tracked(paths, ".py", ".md")
    return [file for file in files if file not in QUOTES and not (file.endswith(".md") and file.startswith("tests/"))]


def check_sentence(file: str, line: int, text: str) -> Iterator[Violation]:
    """Check the words of ``text``, which begins at ``line``, without what it quotes."""
    plain = QUOTED.sub(lambda quoted: re.sub(r"[^\n]", " ", quoted[0]), text)
    for pattern, _, term in PROSE:
        for match in pattern.finditer(plain):
            match_line = line + plain.count("\n", 0, match.start())
            yield Violation(file, match_line, f"“{match[0]}”", "a word of the list in a sentence", f"write {term}")


def check_name(file: str, line: int, name: str) -> Iterator[Violation]:
    for part in split_name(name):
        if term := NAMES.get(part):
            yield Violation(file, line, name, "a word of the list in a name", f"instead of “{part}” write {term}")


def iterate_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Iterate over the names that the file defines: functions, classes, arguments, variables, fields."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def iterate_sentences(text: str, tree: ast.AST, *, has_messages: bool) -> Iterator[tuple[int, str]]:
    """Iterate over comments, docstrings, and, where there are messages, other strings of three words and more."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_sentence = has_messages and re.search(r"[a-z]+ [a-z]+ [a-z]+", node.value) is not None
            if id(node) in docstrings or is_sentence:
                yield node.lineno, node.value


def check_code(file: str, text: str) -> Iterator[Violation]:
    """Check the names, sentences and path of a Python file."""
    tree = ast.parse(text)
    for line, name in iterate_names(tree):
        yield from check_name(file, line, name)
        if name.startswith("test_"):
            yield from check_sentence(file, line, name.replace("_", " "))
    # Tests hold the logs and answers of others as data.
    for line, sentence in iterate_sentences(text, tree, has_messages=not file.startswith("tests/")):
        yield from check_sentence(file, line, sentence)
    for part in Path(file).with_suffix("").parts:
        yield from check_name(file, 1, part)


def check_page(file: str, text: str) -> Iterator[Violation]:
    """Check the sentences of a page without its blocks of code and generated tables, which quote."""
    yield from check_sentence(file, 1, BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text))


def check_words(file: str, text: str) -> list[Violation]:
    return list(check_page(file, text) if file.endswith(".md") else check_code(file, text))


def check_classes(classes: Iterable[Definition]) -> Iterator[Violation]:
    """Check that a class name stands for one thing. Private classes are left out."""
    places: dict[str, str] = {}
    for file, line, name in classes:
        if name not in CLASSES and not name.startswith("_"):
            if name in places:
                advice = f"{places[name]} has one too; name what it is"
                yield Violation(file, line, f"class {name}", "two classes with one name", advice)
            places.setdefault(name, f"{file}:{line}")


def find_violations(paths: list[str]) -> list[Violation]:
    """Find the words of the list below the paths; a class is compared with those of the whole project."""
    files = list_files(paths)
    classes = check_classes(list_classes(list_tracked([], ".py")))
    return [*check_files(check_words, files), *(violation for violation in classes if violation.file in files)]


if __name__ == "__main__":
    sys.exit(run("Check words against .ci/words.toml; docs/glossary.md has the terms.", find_violations))

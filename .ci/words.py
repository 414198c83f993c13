"""Checks the words of the code and the pages against `.ci/words.toml`: `python .ci/words.py [PATH ...]`.

Names are checked part by part, sentences word by word; what stands in backticks or double quotes inside a sentence is
somebody else's spelling and is left alone. A class name is defined once outside tests.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORDS = tomllib.loads((ROOT / ".ci" / "words.toml").read_text("utf-8"))
NAMES: dict[str, str] = WORDS["names"]
CLASSES: dict[str, str] = WORDS["classes"]
QUOTES: dict[str, str] = WORDS["quotes"]
PROSE = [(re.compile(rf"\b{word}\b", re.IGNORECASE), word, term) for word, term in WORDS["prose"].items()]

QUOTED = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"|“[^”]*”|'[^' ]+'|https?://\S+|\{[^}]*\}", re.DOTALL)
BLOCK = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$", re.DOTALL | re.MULTILINE)
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")

Problem = tuple[str, int, str]


def tracked(paths: list[str]) -> list[str]:
    """The Python files and pages that git knows below ``paths``; of the whole project where none are given."""
    listed = subprocess.run(["git", "ls-files", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [file for file in listed.stdout.split("\n") if file and (ROOT / file).exists()]
    pages = [file for file in files if file.endswith(".md") and not file.startswith("tests/")]
    return [file for file in files if file.endswith(".py") and file not in QUOTES] + pages


def in_sentence(file: str, line: int, text: str) -> Iterator[Problem]:
    """Words of the list in ``text``, which begins at ``line``; what it quotes is blanked out first."""
    plain = QUOTED.sub(lambda quoted: re.sub(r"[^\n]", " ", quoted[0]), text)
    for pattern, _, term in PROSE:
        for found in pattern.finditer(plain):
            place = line + plain.count("\n", 0, found.start())
            yield file, place, f"“{found[0]}”: write {term}"


def in_name(file: str, line: int, name: str) -> Iterator[Problem]:
    for part in PART.findall(name):
        if term := NAMES.get(part.lower()):
            yield file, line, f"{name}: instead of “{part.lower()}” write {term}"


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that the file defines: functions, classes, arguments, variables, fields."""
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


def sentences_of(text: str, tree: ast.AST, *, has_messages: bool) -> Iterator[tuple[int, str]]:
    """Comments, docstrings, and, where there are messages, other strings of three words and more."""
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


def in_code(file: str) -> Iterator[Problem]:
    text = (ROOT / file).read_text("utf-8")
    tree = ast.parse(text)
    for line, name in names_of(tree):
        yield from in_name(file, line, name)
        if name.startswith("test_"):
            yield from in_sentence(file, line, name.replace("_", " "))
    # Tests hold the logs and answers of others as data.
    for line, sentence in sentences_of(text, tree, has_messages=not file.startswith("tests/")):
        yield from in_sentence(file, line, sentence)
    for part in Path(file).with_suffix("").parts:
        yield from in_name(file, 1, part)


def in_page(file: str) -> Iterator[Problem]:
    text = (ROOT / file).read_text("utf-8")
    # Blocks of code and the generated tables quote.
    plain = BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    yield from in_sentence(file, 1, plain)


def in_classes(files: list[str]) -> Iterator[Problem]:
    """Class names that stand for two things. Tests are left out."""
    first: dict[str, str] = {}
    for file in files:
        if not file.endswith(".py") or file.startswith("tests/"):
            continue
        for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in CLASSES and not node.name.startswith("_"):
                place = f"{file}:{node.lineno}"
                if node.name in first:
                    yield file, node.lineno, f"class {node.name}: {first[node.name]} has one too; name what it is"
                first.setdefault(node.name, place)


def main(paths: list[str]) -> int:
    files = tracked(paths)
    problems: set[Problem] = set(in_classes(tracked([])))
    problems = {problem for problem in problems if problem[0] in files}
    for file in files:
        problems |= set(in_page(file) if file.endswith(".md") else in_code(file))
    for file, line, message in sorted(problems):
        print(f"{file}:{line}: {message}")
    if problems:
        print(f"{len(problems)} words to replace: .ci/words.toml has the list, docs/glossary.md the terms.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Findings on the pages of security: each has its row, and the tests that a row names exist and name the finding."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

_ROW: Final = re.compile(r"^\| ([HMLN]\d.*) \|$", re.MULTILINE)


def read_rows(*pages: str) -> list[list[str]]:
    return [row.split(" | ") for page in pages for row in _ROW.findall(Path("docs", page).read_text())]


FIRST: Final = read_rows("security-review.md", "security-tests.md")
SECOND: Final = read_rows("security-second-review.md")
ROWS: Final = [*FIRST, *SECOND]
REVIEWED: Final = [f"{kind}{n}" for kind, last in (("H", 9), ("M", 15), ("L", 14)) for n in range(1, last + 1)]
_NAMED: Final = re.compile(r"`(?P<file>[\w/]+\.py|…)(?:::(?P<test>\w+)…?)?`")


@cache
def _list_tests(path: Path) -> tuple[tuple[str, str], ...]:
    """Name and words of each test: its docstring and that of its module."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    tests = [function for function in functions if function.name.startswith("test_")]
    module_docstring = ast.get_docstring(tree) or ""
    return tuple((test.name, f"{test.name} {ast.get_docstring(test) or ''} {module_docstring}") for test in tests)


@cache
def list_all_files() -> tuple[Path, ...]:
    return tuple(Path("tests").rglob("*.py"))


@cache
def list_files(name: str) -> tuple[Path, ...]:
    return tuple(path for path in list_all_files() if str(path).endswith(f"/{name}"))


def list_words(row: list[str]) -> list[list[str]]:
    """List for each test that the row names the words of those that may be meant."""
    words_by_test, last = [], ""
    for match in _NAMED.finditer(row[2]):
        last = last if match["file"] == "…" else match["file"]
        tests = [test for path in list_files(last) for test in _list_tests(path)]
        words_by_test.append([words for name, words in tests if name.startswith(match["test"] or "")])
    return words_by_test


def parse_numbers(row: list[str]) -> list[str]:
    return re.findall(r"[HMLN]\d+", row[0].partition(" ")[0])


def test_each_finding_of_the_review_has_one_row() -> None:
    rows = [number for row in FIRST for number in parse_numbers(row)]
    assert sorted(number for number in rows if number[0] != "N") == sorted(REVIEWED)
    assert len(rows) == len(set(rows))
    assert [number for row in SECOND for number in parse_numbers(row)] == [f"N{n}" for n in range(1, 19)]


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_the_tests_of_a_finding_are_there_and_name_it(row: list[str]) -> None:
    words_by_test = list_words(row)
    assert words_by_test
    assert all(words_by_test), "a test that the row names is not there"
    for number in parse_numbers(row):
        in_name = re.compile(rf"\b{number}\b|_{number.lower()}_")
        assert any(in_name.search(words) for tests in words_by_test for words in tests), f"no test names {number}"

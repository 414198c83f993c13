"""The table of docs/security-tests.md: each row of the acceptance matrix is shown by tests that there are."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path("tests/integration/kubernetes")
_, _, SECTION = Path("docs/security-tests.md").read_text().partition("\n## Callers and requests\n")
TABLE = re.findall(r"^\| (\d[\d, –]*) \| [^|]+ \| ([^|]+) \|$", SECTION.partition("\n## ")[0], re.MULTILINE)


def parse_numbers(text: str) -> set[int]:
    """Parse ``13, 14`` and ``15–18`` as numbers."""
    ranges = [part.split("–") for part in text.split(", ")]
    return {number for bounds in ranges for number in range(int(bounds[0]), int(bounds[-1]) + 1)}


def parse_words(text: str) -> set[int]:
    """Parse ``41 and 43 to 45`` as numbers."""
    return parse_numbers(text.replace(" to ", "–").replace(" and ", ", "))


def parse_tests(tests: str) -> list[tuple[str, str]]:
    """Parse the file and name of each test."""
    return re.findall(r"`(test_\w+\.py)::(\w+)`", tests)


LINES = [(parse_numbers(rows), parse_tests(tests)) for rows, tests in TABLE]


@cache
def index_functions(file: str) -> dict[str, tuple[str, bool]]:
    """Index the functions of a file by name: the docstring, and whether it has parameters."""
    tree = ast.parse((FOLDER / file).read_text())
    return {
        statement.name: (ast.get_docstring(statement) or "", bool(statement.decorator_list))
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@cache
def collect_case_rows(file: str) -> frozenset[int]:
    """Collect the numbers that the cases of the file's tests begin with."""
    tuples = (node for node in ast.walk(ast.parse((FOLDER / file).read_text())) if isinstance(node, ast.Tuple))
    firsts = (node.elts[0] for node in tuples if node.elts)
    return frozenset(first.value for first in firsts if isinstance(first, ast.Constant) and type(first.value) is int)


def collect_rows(file: str, name: str) -> set[int]:
    docstring, has_parameters = index_functions(file)[name]
    rows = {row for text in re.findall(r"Rows? (\d+(?:(?:, | and | to )\d+)*)", docstring) for row in parse_words(text)}
    return rows | collect_case_rows(file) if has_parameters else rows


def test_every_row_is_in_the_table() -> None:
    assert sorted(row for rows, _ in LINES for row in rows) == list(range(1, 87))


@pytest.mark.parametrize(("rows", "tests"), LINES, ids=[rows for rows, _ in TABLE])
def test_the_tests_of_a_line_are_there_and_name_its_rows(rows: set[int], tests: list[tuple[str, str]]) -> None:
    by_test = {test: collect_rows(*test) for test in tests}
    assert rows - set().union(*by_test.values()) == set()
    # None is about something else.
    assert [test for test, rows_of_test in by_test.items() if not rows & rows_of_test] == []

"""Documents of the pipeline: what they name is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PROMISES = "\n".join(Path("docs", name).read_text() for name in ("guarantees.md", "guarantees-answers.md"))
TEXT = PROMISES + Path("docs/guarantees-limits.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
TARGETS = sorted(set(re.findall(r"`make ([a-z]+)", TEXT)))


@cache
def list_functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_a_promise_names_is_there(path: str, name: str) -> None:
    assert name in list_functions(Path(path))


@pytest.mark.parametrize("target", TARGETS)
def test_a_command_that_a_promise_names_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", Path("Makefile").read_text(), re.MULTILINE)


def test_every_promise_names_what_shows_it() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    marks = ("::", "`make ", "the test above")
    assert rows
    assert not [row for row in rows if not any(mark in row for mark in marks)]

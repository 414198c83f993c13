"""Builders, fakes and harnesses have one home, tests/support, and unit tests stand in the folders of what they test."""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path("tests")


@cache
def imported(path: Path) -> set[str]:
    """The modules of tests/ that the file imports, with what it takes from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tests"}


def test_nothing_imports_a_test_module() -> None:
    arrows = [(str(path), name) for path in TESTS.rglob("*.py") for name in imported(path)]
    assert [arrow for arrow in arrows if any(part.startswith("test_") for part in arrow[1].split("."))] == []


@pytest.mark.parametrize("kind", ["unit", "integration", "contract", "e2e"])
def test_folders_of_tests_hold_nothing_but_tests(kind: str) -> None:
    strangers = [path for path in (TESTS / kind).rglob("*.py") if not path.name.startswith("test_")]
    assert [path for path in strangers if path.name != "conftest.py"] == []


def test_support_imports_no_command() -> None:
    taken = {name.split(".")[1] for path in (TESTS / "support").rglob("*.py") for name in imported(path)}
    assert taken == {"support"}


def test_folders_of_unit_tests_are_folders_of_the_code() -> None:
    folders = [path.relative_to(TESTS / "unit") for path in (TESTS / "unit").rglob("test_*.py")]
    assert sorted({str(path.parent) for path in folders if not path.parent.is_dir()}) == []

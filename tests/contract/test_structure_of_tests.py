"""Builders, fakes and harnesses have one home, tests/support, and unit tests stand in the folders of what they test."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support import unit_sessions

TESTS = Path("tests")
IMPORTS = re.compile(r"^[ \t]*((?:from|import) +tests\b[^\n(]*(?:\([^)]*\))?)", re.MULTILINE)
"""Imports of modules of tests/, one to a line or over many lines. To parse whole files took a second and a half."""


@cache
def list_imported(path: Path) -> set[str]:
    """List the modules of tests/ that the file imports, with what it takes from them."""
    modules: set[str] = set()
    for node in (node for text in IMPORTS.findall(path.read_text()) for node in ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


def test_nothing_imports_a_test_module() -> None:
    arrows = [(str(path), name) for path in TESTS.rglob("*.py") for name in list_imported(path)]
    assert [arrow for arrow in arrows if any(part.startswith("test_") for part in arrow[1].split("."))] == []


@pytest.mark.parametrize("kind", ["unit", "integration", "contract", "e2e"])
def test_folders_of_tests_hold_nothing_but_tests(kind: str) -> None:
    strangers = [path for path in (TESTS / kind).rglob("*.py") if not path.name.startswith("test_")]
    assert [path for path in strangers if path.name != "conftest.py"] == []


def test_support_imports_no_command() -> None:
    taken = {name.split(".")[1] for path in (TESTS / "support").rglob("*.py") for name in list_imported(path)}
    assert taken == {"support"}


def test_folders_of_unit_tests_are_folders_of_the_code() -> None:
    folders = [path.relative_to(TESTS / "unit") for path in (TESTS / "unit").rglob("test_*.py")]
    assert sorted({str(path.parent) for path in folders if not path.parent.is_dir()}) == []


def test_each_unit_test_is_in_one_session() -> None:
    commands = unit_sessions.build_commands(["-k", "word"])
    folders = [tuple(part for part in command if Path(part).is_dir()) for command in commands]
    named = [folder for session in unit_sessions.FOLDERS for folder in session]
    assert folders == [*unit_sessions.FOLDERS, ("tests/unit", "tests/contract")]
    assert len(set(named)) == len(named)
    ignored = [[part for part in command if part.startswith("--ignore=")] for command in commands]
    assert ignored == [[], [], [f"--ignore={folder}" for folder in named]]
    assert len({part for command in commands for part in command if part.startswith("cache_dir=")}) == 3
    assert all("word" in command for command in commands)


def test_the_session_with_servers_has_the_paths_of_the_makefile() -> None:
    (served,) = re.findall(r"^SERVED := (.*?[^\\])\n", Path("Makefile").read_text(), re.MULTILINE | re.DOTALL)
    paths = served.replace("\\", "").split()
    assert len(paths) == 4
    assert [path for path in paths if not Path(path).exists()] == []
    command = unit_sessions.build_server_command(paths, ["-k", "word"])
    assert command[-4:] == paths
    assert "word" in command


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 1], 1), ([2, 1], 2), ([5, 0], 0), ([1, 5], 1), ([5, 5], 5), ([0, -9], 1), ([5, 0, 5], 0)],
)
def test_a_session_without_tests_is_no_failure_unless_all_are(codes: list[int], expected: int) -> None:
    assert unit_sessions.derive_exit_code(codes) == expected


def test_a_folder_that_the_caller_chose_for_temporary_files_remains(tmp_path: Path) -> None:
    assert unit_sessions.build_environment({"TMPDIR": "/elsewhere"}, tmp_path) == {"TMPDIR": "/elsewhere"}
    assert unit_sessions.build_environment({}, tmp_path / "missing") == {}

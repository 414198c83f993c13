"""The kind of workload that was added last, as docs/changing.md describes it: in at most three files by hand."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TITLE: Final = "Read AppWrappers of CodeFlare"
MAX_FILES: Final = 3
NOT_BY_HAND: Final = ("tests/", "docs/", "CHANGELOG.md")
"""Beginnings of what a change does not count: its tests, and the words about it."""


def run_git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def list_documented() -> list[str]:
    """List the files that the section names in its list."""
    text = (ROOT / "docs" / "changing.md").read_text("utf-8")
    section = text.partition("## A kind of workload\n")[2].partition("\n## ")[0]
    assert TITLE in section
    return re.findall(r"^- `([^`]+)`", section, re.MULTILINE)


def test_the_documented_files_exist_within_the_limit() -> None:
    files = list_documented()
    assert 0 < len(files) <= MAX_FILES
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_the_last_added_kind_took_the_documented_files_and_no_others() -> None:
    commit = run_git("log", "-1", "--format=%H", "--fixed-strings", f"--grep={TITLE}").strip()
    if not commit:
        pytest.skip("the history of this checkout does not reach back to the commit")
    names = run_git("show", "--name-only", "--format=", commit).split()
    assert sorted(name for name in names if not name.startswith(NOT_BY_HAND)) == sorted(list_documented())

"""docs/changing.md: every file that it names exists, and no change needs more than three."""

import re
from pathlib import Path

import pytest

PAGE = Path("docs/changing.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
FILES = {title: re.findall(r"^- `([^`]+)`", body, re.MULTILINE) for title, body in SECTIONS.items()}
PATHS = sorted(set(re.findall(r"`([\w./-]+/[\w./-]*)`", PAGE)))


def test_the_usual_changes_have_a_section() -> None:
    assert {
        "A reason code",
        "A vendor",
        "An API endpoint",
        "A log source",
        "The encoding of a record",
        "An alert rule",
        "A form in which nodes list devices",
        "A query of the index",
    } <= set(SECTIONS)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_change_needs_one_to_three_files(title: str) -> None:
    assert 1 <= len(FILES[title]) <= 3


@pytest.mark.parametrize("path", PATHS)
def test_a_path_on_the_page_exists(path: str) -> None:
    assert Path(path).exists()


def test_every_file_in_a_list_is_checked() -> None:
    assert {path for paths in FILES.values() for path in paths} <= set(PATHS)

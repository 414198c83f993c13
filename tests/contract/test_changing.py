"""docs/changing.md: its files exist, are at most three for a change, and are those of the changes that are tried."""

import re
from pathlib import Path

import pytest

from tests.support.harness.example_changes import CHANGES, NEW_FILE, Edit, make

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


@pytest.mark.parametrize("title", CHANGES)
def test_a_change_that_is_tried_edits_the_files_of_its_section(title: str) -> None:
    edited = {path for path, edits in CHANGES[title].items() if edits[0].old != NEW_FILE}
    assert edited <= set(FILES[title])
    assert len(CHANGES[title]) == len(FILES[title])


@pytest.mark.parametrize("title", CHANGES)
def test_the_table_counts_the_files_of_a_change(title: str) -> None:
    anchor = title.lower().replace(" ", "-")
    assert f"| [{title[0].lower()}{title[1:]}](#{anchor}) | {len(FILES[title])} |" in PAGE


@pytest.mark.parametrize("title", CHANGES)
def test_an_example_of_a_change_still_fits_the_files(title: str, tmp_path: Path) -> None:
    for path, edits in CHANGES[title].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if edits[0].old != NEW_FILE:
            (tmp_path / path).write_text(Path(path).read_text("utf-8"), "utf-8")
    make(CHANGES[title], tmp_path)


def test_an_example_that_no_longer_fits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("a = 1\na = 1\n")
    with pytest.raises(ValueError, match=r"module\.py does not have 'a = 1' once"):
        make({"module.py": (Edit("a = 1", "a = 2"),)}, tmp_path)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_on_the_page_exists(path: str) -> None:
    assert Path(path).exists()


def test_every_file_in_a_list_is_checked() -> None:
    assert {path for paths in FILES.values() for path in paths} <= set(PATHS)

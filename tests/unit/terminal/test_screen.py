"""Tables where they have room, lines where they have none."""

import pytest

from terminal.screen import Screen, needed_width

COLUMNS = ["POD", "#ATTEMPTS", "REASONS"]
ROWS = [["llm/deepseek-5996b8569d-kgwgx", "12", "CardInsufficientMemory, CardTypeMismatch"], ["a/b", "1", ""]]


def printed(capsys: pytest.CaptureFixture[str], width: int, *, is_wide: bool = False) -> list[str]:
    screen = Screen()
    screen.console.width = width
    screen.table(COLUMNS, ROWS, is_wide=is_wide)
    return capsys.readouterr().out.splitlines()


def test_a_table_has_names_and_numbers_whole(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, 60)
    assert lines[0].split() == ["POD", "ATTEMPTS", "REASONS"]
    assert lines[1].startswith("llm/deepseek-5996b8569d-kgwgx        12  Card")


def test_a_row_is_some_lines_where_columns_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    # 29 + 8 + 14 characters of cells, and two spaces between them.
    assert needed_width(COLUMNS, ROWS) == 55
    assert printed(capsys, 54) == [
        "POD llm/deepseek-5996b8569d-kgwgx",
        "  ATTEMPTS 12",
        "  REASONS CardInsufficientMemory, CardTypeMismatch",
        "POD a/b",
        "  ATTEMPTS 1",
    ]
    assert max(map(len, printed(capsys, 30))) <= 33  # the longest name is one word


def test_a_wide_table_is_one_whatever_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, 30, is_wide=True)[1].endswith("CardInsufficientMemory, CardTypeMismatch")


def test_no_rows_are_a_head_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert needed_width(COLUMNS, []) == len("POD  ATTEMPTS  REASONS")

from cli.terminal.trends import shape
from tests.unit.cli.terminal.conftest import Run


def test_a_shape_has_the_height_of_each_value() -> None:
    assert shape([0, 1, 2, 4, 8]) == " ▁▂▄█"
    assert shape([]) == ""
    assert shape([0, 0, -1]) == "   "


def test_many_values_are_put_together() -> None:
    assert shape([1] * 100) == "█" * 20
    assert len(shape(list(range(97)))) <= 24


def test_the_largest_series_is_the_answer(run: Run) -> None:
    done = run("trends", "-A")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("CardInsufficientMemory is first by obstacle: ")

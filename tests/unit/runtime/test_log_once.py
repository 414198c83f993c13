from runtime.log_once import LoggedProblem


def test_a_problem_is_logged_when_it_changes_and_when_it_ends() -> None:
    lines: list[tuple[object, ...]] = []
    problem = LoggedProblem(
        lambda *values: lines.append(("begins", *values)), lambda *values: lines.append(("ends", *values))
    )
    for text, size in (("", 0), ("full", 1), ("full", 2), ("gone", 3), ("", 4), ("", 5), ("full", 6)):
        problem.note(text, size)
        assert problem.text == text
    assert lines == [("begins", "full", 1), ("begins", "gone", 3), ("ends", "gone", 4), ("begins", "full", 6)]


def test_the_end_of_a_problem_that_was_there_from_the_start_is_logged() -> None:
    lines: list[object] = []
    problem = LoggedProblem(lines.append, lines.append, text="not connected yet")
    problem.note("")
    assert lines == ["not connected yet"]


def test_without_a_line_for_the_end_it_is_silent() -> None:
    lines: list[object] = []
    problem = LoggedProblem(lines.append)
    problem.note("full")
    problem.note("")
    assert lines == ["full"]

from cli.client.problems import Unreachable, WrongRequest
from cli.client.transport import WatchedChange, parse_changes

ERROR = (
    b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "the place is gone. Watch from now"}}\n'
)


def test_lines_are_changes_and_one_that_is_cut_off_is_none() -> None:
    lines = [b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "7.3"}}}\n', b'{"type": "MODI']
    assert list(parse_changes(lines)) == [WatchedChange("ADDED", {"metadata": {"resourceVersion": "7.3"}})]


def test_an_error_ends_a_watch() -> None:
    assert list(parse_changes([ERROR, ERROR])) == [WrongRequest("the place is gone. Watch from now")]


def test_an_answer_that_is_no_watch_is_a_problem() -> None:
    [problem] = parse_changes([b'{"status": "failed"}\n'])
    assert isinstance(problem, Unreachable)

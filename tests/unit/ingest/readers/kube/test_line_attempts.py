"""The memory of readers between two lines: saved, restored, and refused where another version wrote it."""

from datetime import UTC, datetime

import pytest

from ingest.readers.kube.line_attempts import LineAttempts

NOW = datetime(2026, 11, 21, 3, 0, 0, tzinfo=UTC)


def an_open_attempt(version: int = 1) -> LineAttempts:
    attempts = LineAttempts("default", "log", version)
    attempts.open("ml/train", NOW).refused["node1"] = "Insufficient cpu"
    return attempts


def test_what_is_open_continues_after_a_restart() -> None:
    before, after = an_open_attempt(), LineAttempts("default", "log", 1)
    after.restore(before.save())
    assert after.memory == before.memory
    assert after.list_unfinished() == before.list_unfinished() == {f"ml/train {NOW}"}


@pytest.mark.parametrize(
    ("saved", "problem"),
    [
        (an_open_attempt(2).save(), "the saved state has version 2, this program reads 1"),
        (b'{"version": 1, "sessions": []}', "another version saved the state of the log"),
        (b"{", "another version saved the state of the log"),
    ],
)
def test_the_memory_of_another_version_is_refused_and_changes_nothing(saved: bytes, problem: str) -> None:
    attempts = an_open_attempt()
    with pytest.raises(ValueError, match=problem):
        attempts.restore(saved)
    assert attempts.list_unfinished() == {f"ml/train {NOW}"}

"""Waiting of the tests: what does not happen in time fails, and the failure shows what was seen last."""

import itertools
import math
import time

import pytest

from tests.support.waiting import MAX_SHOWN, await_end, eventually, until


def test_the_first_right_answer_is_returned() -> None:
    numbers = itertools.count()
    assert until(lambda: next(numbers), lambda number: number == 2) == 2
    assert eventually(lambda: next(numbers)) == 3


def test_an_answer_that_is_never_right_fails_with_the_last_one() -> None:
    numbers = itertools.count()
    with pytest.raises(AssertionError, match=r"it did not happen in time; the last answer: \['seen', \d\]$"):
        until(lambda: ["seen", next(numbers)], lambda answer: answer == ["other"], seconds=0.1)


def test_an_end_comes_with_the_beginning_of_the_read_before_it() -> None:
    began = time.monotonic()
    begins: list[float] = []

    def read() -> int:
        begins.append(time.monotonic())
        return len(begins)

    last_read_at, answer = await_end(read, lambda number: number == 3)
    assert (began <= last_read_at <= begins[1], answer) == (True, 3)
    assert last_read_at > begins[0]
    assert await_end(lambda: 401, lambda status: status == 401) == (-math.inf, 401)


def test_a_long_answer_is_cut() -> None:
    with pytest.raises(AssertionError) as failure:
        until(lambda: "x" * 10 * MAX_SHOWN, lambda answer: not answer, seconds=0.0)
    assert MAX_SHOWN <= len(str(failure.value)) < MAX_SHOWN + 100


def test_a_probe_without_a_true_answer_fails_with_the_callers_text() -> None:
    with pytest.raises(AssertionError, match="the log has no line"):
        eventually(lambda: "", lambda: "the log has no line", seconds=0.0)

"""Remembered answers: for how long, and how much of them."""

from api.authority.remembered import Remembered, TimedAnswer
from tests.support.harness.guarded_api import Clock


async def remember(remembered: Remembered[str, int], key: str, seconds: float) -> None:
    async def ask() -> TimedAnswer[int]:
        return TimedAnswer(ord(key), seconds)

    await remembered.get(key, ask)


async def test_an_answer_is_found_for_as_long_as_it_says_and_as_the_reader_wants() -> None:
    remembered: Remembered[str, int] = Remembered(10, 10, clock := Clock())
    assert (remembered.find("a"), remembered.has("a")) == (None, False)
    await remember(remembered, "a", seconds=10)
    clock.now += 5
    assert (remembered.find("a"), remembered.has("a")) == (97, True)
    assert (remembered.find("a", max_age=6), remembered.find("a", max_age=5)) == (97, None)
    clock.now += 5
    assert (remembered.find("a"), remembered.has("a")) == (None, False)


async def test_where_there_are_too_many_the_one_that_came_first_is_forgotten() -> None:
    remembered: Remembered[str, int] = Remembered(2, 10, clock := Clock())
    for key in "ab":
        await remember(remembered, key, seconds=1)
    clock.now += 1
    # "a" has ended, and comes again as the latest.
    await remember(remembered, "a", seconds=10)
    await remember(remembered, "c", seconds=10)
    assert [remembered.find(key) for key in "abc"] == [97, None, 99]

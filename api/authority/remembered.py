"""Remembers answers by key, each for as long as it says, and asks one question at a time for a key."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TimedAnswer(NamedTuple, Generic[V]):
    value: V
    seconds: float
    """How long it is remembered, from when it came."""


class _Kept(NamedTuple, Generic[V]):
    answer: TimedAnswer[V]
    answered_at: float


class BusyError(Exception):
    """So many questions wait for their answers that another one would only wait longer."""


class Remembered(Generic[K, V]):
    def __init__(self, max_answers: int, max_questions: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``max_questions``: how many may wait for their answers at once."""
        self._max_questions = max_questions
        # A monotonic clock: one that is set back must not make a right last longer.
        self._max_answers, self._clock = max_answers, clock
        self._answers: dict[K, _Kept[V]] = {}
        """In the order in which they came."""
        self._questions: dict[K, asyncio.Task[V]] = {}

    def find(self, key: K, max_age: float = math.inf) -> V | None:
        """The answer that is remembered for at most ``max_age`` seconds; None where there is none."""
        kept = self._kept(key, max_age)
        return kept.answer.value if kept else None

    def has(self, key: K) -> bool:
        return self._kept(key) is not None

    async def get(self, key: K, ask: Callable[[], Awaitable[TimedAnswer[V]]], max_age: float = math.inf) -> V:
        """The answer, remembered for at most ``max_age`` seconds or new.

        Raises ``BusyError`` and what ``ask`` raises, which is not remembered.
        """
        if kept := self._kept(key, max_age):
            return kept.answer.value
        question = self._questions.get(key)
        if question is None:
            if len(self._questions) >= self._max_questions:
                raise BusyError(f"{self._max_questions} questions wait for their answers")
            question = self._questions[key] = asyncio.create_task(self._asked(key, ask))
            question.add_done_callback(lambda _: self._questions.pop(key))
        # A caller that hangs up must not take the answer from the others who wait for it.
        return await asyncio.shield(question)

    async def _asked(self, key: K, ask: Callable[[], Awaitable[TimedAnswer[V]]]) -> V:
        answer = await ask()
        self._answers.pop(key, None)
        self._answers[key] = _Kept(answer, self._clock())
        # The oldest, and not the least recently used, which would cost every look-up: no answer lasts long.
        while len(self._answers) > self._max_answers:
            del self._answers[next(iter(self._answers))]
        return answer.value

    def _kept(self, key: K, max_age: float = math.inf) -> _Kept[V] | None:
        kept = self._answers.get(key)
        is_valid = kept and self._clock() - kept.answered_at < min(kept.answer.seconds, max_age)
        return kept if is_valid else None

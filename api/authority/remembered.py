"""Answers by key, each remembered for as long as it allows, with one question at a time for a key."""

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
    """Time for which it is remembered, from its arrival."""


class _Remembered(NamedTuple, Generic[V]):
    answer: TimedAnswer[V]
    answered_at: float


class BusyError(Exception):
    """Refusal of a question because too many others wait for their answers."""


class Remembered(Generic[K, V]):
    def __init__(self, max_answers: int, max_questions: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember at most ``max_answers``; at most ``max_questions`` wait for their answers at once."""
        self._max_questions = max_questions
        # A monotonic clock: setting a clock back must not make a right last longer.
        self._max_answers, self._clock = max_answers, clock
        self._answers: dict[K, _Remembered[V]] = {}
        """Answers in the order of their arrival."""
        self._questions: dict[K, asyncio.Task[V]] = {}

    def find(self, key: K, max_age: float = math.inf) -> V | None:
        """Find an answer of at most ``max_age`` seconds; None without one."""
        entry = self._find_valid(key, max_age)
        return entry.answer.value if entry else None

    def has(self, key: K) -> bool:
        return self._find_valid(key) is not None

    async def get(self, key: K, ask: Callable[[], Awaitable[TimedAnswer[V]]], max_age: float = math.inf) -> V:
        """Return a remembered answer of at most ``max_age`` seconds, or a new one.

        Raises ``BusyError`` and what ``ask`` raises, which is not remembered.
        """
        if entry := self._find_valid(key, max_age):
            return entry.answer.value
        question = self._questions.get(key)
        if question is None:
            if len(self._questions) >= self._max_questions:
                raise BusyError(f"{self._max_questions} questions wait for their answers")
            question = self._questions[key] = asyncio.create_task(self._ask(key, ask))
            question.add_done_callback(lambda _: self._questions.pop(key))
        # A caller who hangs up must not take the answer from the others who wait for it.
        return await asyncio.shield(question)

    async def _ask(self, key: K, ask: Callable[[], Awaitable[TimedAnswer[V]]]) -> V:
        answer = await ask()
        self._answers.pop(key, None)
        self._answers[key] = _Remembered(answer, self._clock())
        # The oldest, and not the least recently used, which would cost every look-up: no answer lasts long.
        while len(self._answers) > self._max_answers:
            del self._answers[next(iter(self._answers))]
        return answer.value

    def _find_valid(self, key: K, max_age: float = math.inf) -> _Remembered[V] | None:
        entry = self._answers.get(key)
        is_valid = entry and self._clock() - entry.answered_at < min(entry.answer.seconds, max_age)
        return entry if is_valid else None

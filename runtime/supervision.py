"""Parts of one process: each runs until it is stopped, and one that fails is started again while the others continue.

A part that fails again and again has a cause that no restart cures: then the process ends with a sentence, and its
own supervisor (Kubernetes, systemd, compose) shows it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from runtime.backoff import draw_backoff_seconds
from runtime.signals import end
from runtime.telemetry.health import ServeHealth
from runtime.telemetry.parts_health import PartsHealth

logger = logging.getLogger(__name__)

MAX_FAILURES: Final = 5
"""Failures of a part in a row that end the process."""
CALM_SECONDS: Final = 60.0
"""A part that ran this long has not failed in a row."""


class CrashLoopError(Exception):
    """A part fails whenever it is started; the message names the part, the cause and the next step."""


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """One of the works of a process."""

    name: str
    work: Callable[[ServeHealth], Coroutine[Any, Any, None]]
    """Function whose coroutine runs until it is cancelled."""
    stage: int = 0
    """Place in the order of the end: parts of a lower stage have ended before those of a higher one are stopped."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Treatment of the errors of a part."""

    fatal: tuple[type[Exception], ...] = ()
    """Errors that only a person can cure; they end the process at once."""
    passing: tuple[type[Exception], ...] = ()
    """Errors of a store or server that is away; the part starts again however often they come."""
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 10.0
    max_failures: int = MAX_FAILURES
    calm_seconds: float = CALM_SECONDS


class Supervisor:
    """Runs the parts side by side."""

    def __init__(self, parts: Sequence[ProcessPart], health: PartsHealth, policy: RestartPolicy) -> None:
        self._parts, self._health, self._policy = parts, health, policy

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, then end all parts in their order.

        Raises ``CrashLoopError``, and the errors that the policy calls fatal.
        """
        tasks = {part.name: asyncio.create_task(self._keep_running(part), name=part.name) for part in self._parts}
        stopping = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([stopping, *tasks.values()], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopping}:
                task.result()
        finally:
            await self._end_in_order(tasks)
            await end([stopping])

    async def _end_in_order(self, tasks: dict[str, asyncio.Task[None]]) -> None:
        for _, parts in groupby(sorted(self._parts, key=attrgetter("stage")), attrgetter("stage")):
            names = [part.name for part in parts]
            began = time.monotonic()
            await end([tasks[name] for name in names])
            logger.info("%s ended after %.1f s", ", ".join(names), time.monotonic() - began)

    async def _keep_running(self, part: ProcessPart) -> None:
        failures, pauses = 0, self._draw_pauses()
        while True:
            started_at = time.monotonic()
            error = await self._run_once(part)
            if time.monotonic() - started_at >= self._policy.calm_seconds:
                failures, pauses = 0, self._draw_pauses()
            if not isinstance(error, self._policy.passing):
                failures += 1
            if failures >= self._policy.max_failures:
                raise CrashLoopError(
                    f"{part.name} has failed {failures} times in a row, the last time with {_describe(error)}: "
                    "the log has the traceback of each; if the cause is not one of yours, please report it"
                )
            pause = next(pauses)
            self._health.note_trouble(part.name, f"starts again after {_describe(error)}")
            logger.warning("%s starts again in %.1f s; the other parts continue", part.name, pause)
            await asyncio.sleep(pause)

    async def _run_once(self, part: ProcessPart) -> Exception:
        """Run the part until it fails, and return its error. Raises fatal errors."""
        try:
            await part.work(self._health.serve_part(part.name))
        except self._policy.fatal:
            raise
        except self._policy.passing as error:
            logger.warning("%s: %s", part.name, error)
            return error
        except Exception as error:
            logger.exception("%s has failed", part.name)
            return error
        logger.error("%s has ended by itself", part.name)
        return RuntimeError("has ended by itself")

    def _draw_pauses(self) -> Any:
        rng = random.Random()  # noqa: S311 - no secret depends on it
        return draw_backoff_seconds(rng, self._policy.first_pause_seconds, self._policy.longest_pause_seconds)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}" if str(error) else type(error).__name__

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from runtime.signals import run_until_cancelled
from runtime.supervision import CrashLoopError, ProcessPart, RestartPolicy, Supervisor
from runtime.telemetry.health import ServeHealth
from runtime.telemetry.parts_health import PartsHealth

QUICK: dict[str, Any] = {"first_pause_seconds": 0.001, "longest_pause_seconds": 0.002}


class Works:
    """Works of parts that note what happens to them."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def run_until_cancelled(self, name: str) -> Callable[[ServeHealth], Coroutine[Any, Any, None]]:
        async def work(_: ServeHealth) -> None:
            self.events.append(f"{name} starts")
            try:
                await asyncio.Event().wait()
            finally:
                self.events.append(f"{name} ends")

        return work

    def fail(
        self, name: str, error: Exception, times: int = 1_000
    ) -> Callable[[ServeHealth], Coroutine[Any, Any, None]]:
        continuing = self.run_until_cancelled(name)

        async def work(serve_health: ServeHealth) -> None:
            if self.events.count(f"{name} fails") < times:
                self.events.append(f"{name} fails")
                raise error
            await continuing(serve_health)

        return work


@pytest.fixture
def works() -> Works:
    return Works()


def create_supervisor(*parts: ProcessPart, policy: RestartPolicy | None = None) -> tuple[Supervisor, PartsHealth]:
    health = PartsHealth([part.name for part in parts])
    return Supervisor(parts, health, policy or RestartPolicy(**QUICK)), health


async def run_until(supervisor: Supervisor, is_over: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop))
    async with asyncio.timeout(5):
        while not is_over() and not running.done():
            await asyncio.wait([running], timeout=0.001)
        stop.set()
        await running


async def test_a_part_that_fails_starts_again_and_the_other_is_not_touched(works: Works) -> None:
    supervisor, _ = create_supervisor(
        ProcessPart("worker", works.fail("worker", OSError("broken pipe"), times=2)),
        ProcessPart("api", works.run_until_cancelled("api")),
    )
    await run_until(supervisor, lambda: "worker starts" in works.events)
    assert works.events.count("worker fails") == 2
    assert works.events.count("api starts") == 1


async def test_a_part_that_returns_by_itself_starts_again(works: Works) -> None:
    async def return_at_once(_: ServeHealth) -> None:
        works.events.append("returns")

    supervisor, _ = create_supervisor(ProcessPart("retention", return_at_once))
    with pytest.raises(CrashLoopError, match="retention has failed 5 times in a row"):
        await supervisor.run(asyncio.Event())
    assert works.events == ["returns"] * 5


async def test_a_crash_loop_ends_the_process_with_a_sentence_after_all_parts_have_ended(works: Works) -> None:
    supervisor, _ = create_supervisor(
        ProcessPart("index", works.fail("index", OSError("no such mapping"))),
        ProcessPart("api", works.run_until_cancelled("api")),
    )
    with pytest.raises(
        CrashLoopError, match=r"index has failed 5 times in a row.*OSError: no such mapping.*log"
    ) as caught:
        await supervisor.run(asyncio.Event())
    assert "\n" not in str(caught.value)
    assert works.events[-1] == "api ends"


async def test_failures_after_a_calm_time_do_not_add_up(works: Works) -> None:
    calm = RestartPolicy(**QUICK, max_failures=2, calm_seconds=0.01)

    async def fail_after_calm(_: ServeHealth) -> None:
        works.events.append("runs")
        await asyncio.sleep(0.02)
        raise OSError

    supervisor, _ = create_supervisor(ProcessPart("worker", fail_after_calm), policy=calm)
    await run_until(supervisor, lambda: works.events.count("runs") == 5)
    assert works.events.count("runs") == 5


async def test_a_store_that_is_away_is_no_crash_loop(works: Works) -> None:
    patient = RestartPolicy(passing=(ConnectionError,), **QUICK)
    part = ProcessPart("kube-events", works.fail("kube-events", ConnectionRefusedError("no Kafka"), times=20))
    supervisor, _ = create_supervisor(part, policy=patient)
    await run_until(supervisor, lambda: "kube-events starts" in works.events)
    assert works.events.count("kube-events fails") == 20


async def test_an_error_that_only_a_person_can_cure_ends_the_process_at_once(works: Works) -> None:
    supervisor, _ = create_supervisor(
        ProcessPart("worker", works.fail("worker", KeyError("topic"))),
        policy=RestartPolicy(fatal=(LookupError,), **QUICK),
    )
    with pytest.raises(KeyError, match="topic"):
        await supervisor.run(asyncio.Event())
    assert works.events == ["worker fails"]


async def test_parts_end_stage_by_stage(works: Works) -> None:
    supervisor, _ = create_supervisor(
        ProcessPart("api", works.run_until_cancelled("api"), 3),
        ProcessPart("kube-events", works.run_until_cancelled("kube-events"), 0),
        ProcessPart("worker", works.run_until_cancelled("worker"), 1),
    )
    await run_until(supervisor, lambda: len(works.events) == 3)
    assert works.events[3:] == ["kube-events ends", "worker ends", "api ends"]


async def test_readiness_names_the_part_that_waits_to_start_again(works: Works) -> None:
    slow = RestartPolicy(first_pause_seconds=60, longest_pause_seconds=60)
    supervisor, health = create_supervisor(ProcessPart("index", works.fail("index", OSError("mapping"))), policy=slow)
    await run_until(supervisor, lambda: "starts again" in health.check_ready())
    assert health.check_ready() == "index: starts again after OSError: mapping"


async def test_a_cancelled_work_ends_by_its_own_stop() -> None:
    stop, events = asyncio.Event(), list[str]()

    async def work() -> None:
        await stop.wait()
        events.append("has published what was open")

    task = asyncio.create_task(run_until_cancelled(work(), stop.set, 5))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["has published what was open"]


async def test_a_cancelled_work_that_does_not_stop_is_cancelled_after_the_limit() -> None:
    task = asyncio.create_task(run_until_cancelled(asyncio.Event().wait(), lambda: None, 0.01))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            await task

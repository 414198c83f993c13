import asyncio
import os
import signal

import pytest

from runtime.signals import run_until_first_ends, run_until_stopped


class WorkError(Exception):
    pass


async def test_the_others_are_cancelled_when_the_first_ends() -> None:
    cancelled = asyncio.Event()

    async def wait_forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise WorkError

    with pytest.raises(WorkError):
        await run_until_first_ends(wait_forever(), fail())
    assert cancelled.is_set()


async def test_a_part_that_loses_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.signals.CANCEL_AGAIN_SECONDS", 0.01)
    lost = 0

    async def lose_cancellation() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost += 1
                if lost == 3:
                    raise

    await run_until_first_ends(lose_cancellation(), asyncio.sleep(0))
    assert lost == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_work_ends_by_a_signal(number: signal.Signals) -> None:
    async def work() -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    try:
        await run_until_stopped(work())
    finally:
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

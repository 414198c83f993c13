"""M6: a scheduler process whose clock is set while it runs; what it answers is in Kafka, in order."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import httpx
import pytest

from schemas.codec.records import decode
from schemas.events import AttemptConcluded, AttemptUnchanged
from schemas.topics import DECISIONS
from tests.support.backends import Addresses
from tests.support.harness.decisions_in_kafka import find_lacking
from tests.support.harness.scheduler_process import SchedulerProcess, a_refused_pod, read_topic
from tests.support.harness.settable_clock import SettableClock
from tests.support.harness.topics import provision_all

HOUR: Final = 3600


def get_readiness(scheduler: SchedulerProcess) -> httpx.Response:
    return httpx.get(f"{scheduler.url}/readyz", timeout=30)


def refuse_pod(scheduler: SchedulerProcess, name: str) -> str:
    """Filter a pod that is refused, and return its key."""
    answer = scheduler.filter(a_refused_pod(name, "clock"))
    assert len(answer["FailedNodes"] or ()) == 5, answer["Error"]
    return f"default/clock/{name}"


class SchedulerOfAnotherTime(SchedulerProcess):
    """Its clock can be set while it runs."""

    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder, *flags)
        try:
            self.clock = SettableClock(folder)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    def _spawn(self, flags: Sequence[str], output: IO[bytes], environment: dict[str, str]) -> subprocess.Popen[Any]:
        command = [sys.executable, "-m", "scheduler", "serve", *flags]
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment | self.clock.environment)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
async def test_m6_what_is_answered_while_the_clock_is_set_back_and_forth_is_in_kafka(
    backends: Addresses, tmp_path: Path
) -> None:
    await provision_all(backends.bootstrap_servers)
    pods: list[str] = []
    with SchedulerOfAnotherTime(tmp_path, "--kafka", backends.bootstrap_servers) as scheduler:
        for turn, hours in enumerate((0, 1, 0, -1, 1, 0)):
            scheduler.clock.set(hours * (HOUR + 60))
            pods += [refuse_pod(scheduler, f"pod{turn}-{number}") for number in range(5)]
            refuse_pod(scheduler, "same")
        assert get_readiness(scheduler).json() == {"ready": True, "spool": "ok", "cluster": "ok"}
        scheduler.wait_until_sent()
        assert scheduler.stop() == 0
    reads = await read_topic(backends.bootstrap_servers, DECISIONS.name, "default/clock/")
    assert find_lacking(reads, pods) == {}
    events = [decode(read.value, read.headers) for read in reads]
    ended = [event for event in events if isinstance(event, AttemptConcluded | AttemptUnchanged)]
    starts = [event.started_at for event in ended if event.pod.name == "same"]
    # At least once: what is sent again is in order at its last sending.
    last = list(dict.fromkeys(reversed(starts)))[::-1]
    assert len(last) == 6
    assert last == sorted(last), "in the order in which they were made"
    seen = [event.started_at for event in ended]
    assert (max(seen) - min(seen)).total_seconds() > 2 * HOUR, "the clock was set"

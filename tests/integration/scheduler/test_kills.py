"""Scheduler processes, each ended by SIGKILL at a random moment: whatever they answered is in Kafka afterwards."""

import contextlib
import random
import threading
from pathlib import Path

import httpx
import pytest

from schemas.codec.records import decode
from schemas.events import DevicesJudged
from schemas.events.node_states import build_state_id
from schemas.topics import DECISIONS, NODE_STATES
from tests.support.backends import Addresses
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.decisions_in_kafka import find_lacking
from tests.support.harness.scheduler_process import Read, SchedulerProcess, a_refused_pod, read_topic
from tests.support.harness.topics import provision_all
from tests.support.stress import count_examples

SEEDS, RESTARTS = count_examples(1), 20
CALLERS = 2
LONGEST_SECONDS = 0.25


class Caller(threading.Thread):
    """Asks one thing after the other until nobody answers; `answered` are the pods that were."""

    def __init__(self, scheduler: SchedulerProcess, namespace: str, name: str, begun: threading.Event) -> None:
        super().__init__()
        self._scheduler, self._namespace, self._name, self._begun = scheduler, namespace, name, begun
        self.answered: list[str] = []

    def run(self) -> None:
        with contextlib.suppress(httpx.TransportError):
            while True:
                name = f"{self._name}-{len(self.answered)}"
                fits = a_pod(name, namespace=self._namespace, uid=f"uid-{self._namespace}-{name}")
                refused = a_refused_pod(name, self._namespace)
                self._scheduler.filter(fits if len(self.answered) % 2 else refused)
                self.answered.append(f"default/{self._namespace}/{name}")
                self._begun.set()


def live_once(scheduler: SchedulerProcess, namespace: str, life: int, draw: random.Random) -> list[str]:
    """Live until the kill at a random moment after the first answer, in calls or not; return the pods that were
    answered.
    """
    begun = threading.Event()
    callers = [Caller(scheduler, namespace, f"pod{life}-{number}", begun) for number in range(CALLERS)]
    with scheduler:
        for caller in callers:
            caller.start()
        begun.wait(10)
        threading.Event().wait(draw.uniform(0, LONGEST_SECONDS))
        scheduler.kill()
        for caller in callers:
            caller.join()
    return [pod for caller in callers for pod in caller.answered]


def list_named_states(reads: list[Read]) -> set[str]:
    """List the ids of the states that the verdicts on devices name."""
    events = (decode(read.value, read.headers) for read in reads)
    return {
        build_state_id(event.cluster, event.scheduler, node, event.epoch, revision)
        for event in events
        if isinstance(event, DevicesJudged)
        for node, revision in zip(event.nodes, event.revision.tolist(), strict=True)
    }


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_was_answered_before_any_of_twenty_kills_is_in_kafka(
    backends: Addresses, tmp_path: Path, seed: int
) -> None:
    await provision_all(backends.bootstrap_servers)
    draw, namespace = random.Random(seed), f"lives-{seed}"
    scheduler = SchedulerProcess(tmp_path, "--kafka", backends.bootstrap_servers)
    answered = [pod for life in range(RESTARTS) for pod in live_once(scheduler, namespace, life, draw)]
    with scheduler:
        scheduler.wait_until_sent()
        assert scheduler.stop() == 0
    reads = await read_topic(backends.bootstrap_servers, DECISIONS.name, f"default/{namespace}/")
    assert len(answered) > RESTARTS
    assert find_lacking(reads, answered) == {}
    states = {read.get_header("ce_id") for read in await read_topic(backends.bootstrap_servers, NODE_STATES.name)}
    # Of every process there were verdicts, and each of them counted for itself.
    assert len({name.split("/state/")[1].split("/")[0] for name in list_named_states(reads)}) >= RESTARTS
    assert list_named_states(reads) <= states

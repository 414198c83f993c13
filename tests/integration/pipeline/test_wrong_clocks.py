"""N1: the worker and the index writer while their own clocks are set back and forth by days.

They wait, say so, and lose nothing: no record is dead-lettered for a time that was right.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from dev.demo.processes import Processes, find_free_ports
from schemas.events import AttemptEvent
from schemas.topics import DEAD_LETTERS
from tests.support.builders.attempts import an_attempt, build_common
from tests.support.harness.pipeline_process import Pipeline
from tests.support.harness.settable_clock import SettableClock
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
DAY: Final = 86_400
NODES: Final = {"node1": [["CardCordoned"] * 2]}


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> SettableClock:
    try:
        return SettableClock(tmp_path_factory.mktemp("clock"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def misled(provisioned: Pipeline, clock: SettableClock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A worker and an index writer of their own, whose clock is set; the broker's is right."""
    folder: Path = tmp_path_factory.mktemp("misled")
    ports = find_free_ports("worker", "index")
    with Processes(folder, provisioned.processes.environment | clock.environment) as processes:
        yield replace(provisioned, processes=processes, port=int(ports["worker"]), index_port=int(ports["index"]))


def build_attempts_of_now(namespace: str, count: int) -> list[AttemptEvent]:
    attempts = []
    for number in range(count):
        common = build_common(f"pod-{number}", namespace) | {"started_at": datetime.now(UTC) + timedelta(0, number)}
        attempts += an_attempt(NODES, **common)
    return attempts


def count_dead_letters(running: Pipeline) -> int:
    return len(running.read_topic(DEAD_LETTERS.name))


@pytest.mark.parametrize(("days", "words"), [(-2, "172800 s behind"), (2, "172800 s ahead of")])
def test_n1_a_pipeline_whose_clock_is_days_off_waits_says_so_and_loses_nothing(
    misled: Pipeline, clock: SettableClock, days: int, words: str
) -> None:
    namespace = f"clock-{abs(days)}-{'ahead' if days > 0 else 'behind'}"
    if not misled.processes.list_running():
        misled.start_all()
    dead_letters = count_dead_letters(misled)
    clock.set(days * DAY)
    try:
        misled.send(build_attempts_of_now(namespace, 20))
        eventually(lambda: words in misled.get_readiness(), "the worker is ready with a wrong clock")
        assert misled.sum_metric("schedulerlog_worker_clock_ahead_seconds") == pytest.approx(days * DAY, abs=30)
        assert "run a time service" in misled.get_readiness()
        assert misled.get_attempts(namespace) == {}
    finally:
        clock.set(0)
    assert len(until(lambda: misled.get_attempts(namespace), lambda documents: len(documents) == 20)) == 20
    misled.wait_ready()
    misled.wait_index_ready()
    assert count_dead_letters(misled) == dead_letters
    misled.processes.check()


def test_n1_an_index_writer_whose_clock_is_set_back_writes_nothing_away(misled: Pipeline, clock: SettableClock) -> None:
    """The worker's clock is right: what it publishes reaches an index writer that lives two days ago."""
    if not misled.processes.list_running():
        misled.start_all()
    dead_letters = count_dead_letters(misled)
    misled.processes.stop("worker")
    clock.set(-2 * DAY)
    try:
        eventually(lambda: misled.processes.is_running("index"), "the index writer has ended")
        misled.processes.start(
            "worker", "pipeline", "worker", "--metrics-address", str(misled.port), LD_PRELOAD="", CLOCK_OFFSET_FILE=""
        )
        misled.wait_ready()
        misled.send(build_attempts_of_now("clock-index", 20))
        eventually(lambda: "172800 s behind" in misled.get_index_readiness(), "the index writer is ready")
        assert misled.get_attempts("clock-index") == {}
    finally:
        clock.set(0)
    assert len(until(lambda: misled.get_attempts("clock-index"), lambda documents: len(documents) == 20)) == 20
    assert count_dead_letters(misled) == dead_letters

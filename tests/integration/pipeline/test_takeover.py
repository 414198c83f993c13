"""A worker is killed, and its partitions are processed again. How soon is measured, and printed at the end."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from dev import embedded
from dev.demo.processes import find_free_ports
from schemas.events import AttemptEvent
from schemas.topics import ATTEMPTS
from tests.support.builders.attempts import an_attempt, build_common
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.stress import IS_STRESS
from tests.support.waiting import until

DEVICES = {"node1": [["CardInsufficientMemory"] * 2], "node2": [["NumaNotFit"] * 2]}
PODS = 48
"""On all twelve partitions."""


def on_all_partitions(namespace: str) -> list[AttemptEvent]:
    """Build attempts that start now, of pods on all partitions."""
    started = datetime.now(UTC)
    return [
        event
        for number in range(PODS)
        for event in an_attempt(
            DEVICES,
            **build_common(f"pod-{number}", namespace) | {"started_at": started + timedelta(milliseconds=number)},
        )
    ]


def send_and_wait(running: Pipeline, namespace: str) -> None:
    """Return when an attempt of every partition is on the topic."""
    sent = on_all_partitions(namespace)
    running.send(sent)
    wanted = {event.attempt_id for event in sent}
    assert until(lambda: wanted <= {_get_attempt_id(record) for record in running.read_topic(ATTEMPTS.name)})


def _get_attempt_id(record: Any) -> str:
    return str(dict(record.headers)["ce_id"].decode().partition("/")[0])


Figure = Callable[[str], None]
KILLS: Final = 3 if IS_STRESS else 1


def measure_kills(running: Pipeline, then: Callable[[], None]) -> str:
    """Measure the seconds from each kill until everything that was sent meanwhile is published."""
    durations = []
    for _ in range(KILLS):
        began = time.monotonic()
        running.processes.kill("worker")
        then()
        send_and_wait(running, f"after-{began:.3f}")
        durations.append(time.monotonic() - began)
        if not running.processes.is_running("worker"):
            running.start("worker", "--instance-id", "first")
        running.wait_ready()
    return ", ".join(f"{seconds:.1f} s" for seconds in durations)


@pytest.mark.stress
def test_another_worker_takes_over_from_one_that_is_killed_and_not_started_again(
    servers: embedded.Backends, tmp_path: Path, figure: Figure
) -> None:
    with pipeline(tmp_path, servers, SCHEDULERLOG_SESSION_TIMEOUT="2") as running:
        other = replace(running, port=int(find_free_ports("other")["other"]))
        running.start("worker", "--instance-id", "first")
        other.start("other", "--instance-id", "second")
        running.wait_ready("worker")
        other.wait_ready("other")
        figure(f"another worker took over after {measure_kills(running, lambda: None)}, with sessions of 2 s")


@pytest.mark.stress
def test_a_killed_worker_that_is_started_again_continues_before_its_session_ends(
    servers: embedded.Backends, tmp_path: Path, figure: Figure
) -> None:
    # The broker holds a killed worker's partitions until its session ends, unless the same instance comes back. The
    # test waits for less than a session. It is the last one here: its worker's session outlasts it.
    with pipeline(tmp_path, servers, SCHEDULERLOG_SESSION_TIMEOUT="300") as running:
        running.start()
        running.wait_ready()
        figure(f"a killed worker, started again, continued after {measure_kills(running, running.start)}")

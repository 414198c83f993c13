"""A StatefulSet of workers under load, as its controller works: ordinal names, SIGTERM and a grace period, the highest
ordinal first, the next one when the one before is ready; a broken template stops the rollout where it is."""

import random
from collections.abc import Callable
from typing import Final

from tests.chaos.ground import Ground
from tests.chaos.load import Load

GRACE_SECONDS: Final = 30
"""``terminationGracePeriodSeconds`` of deploy/kustomize/base/worker.yaml."""
REPLICAS: Final = 3
NAME: Final = "schedulerlog-worker"

Some = Callable[[], None]


def roll_out(ground: Ground, load: Load, chance: random.Random) -> None:
    """Scale from one worker to three, roll out, break it and roll back, and scale down to one."""

    def wait_for_pods() -> None:
        load.wait_for(len(load.answers) + chance.randint(3, 8))

    ground.processes.stop("worker")
    _start(ground, 0)
    wait_for_pods()
    # Parallel: all of them at once.
    for ordinal in range(1, REPLICAS):
        ground.start_worker(_name_pod(ordinal))
    for ordinal in range(1, REPLICAS):
        ground.wait_ready(_name_pod(ordinal))
    wait_for_pods()
    _replace_all(ground, wait_for_pods, SCHEDULERLOG_COUNT_INTERVAL="1")
    _break_and_roll_back(ground, wait_for_pods)
    for ordinal in reversed(range(1, REPLICAS)):
        _terminate(ground, ordinal)
    wait_for_pods()
    _terminate(ground, 0)
    ground.start_worker()
    ground.wait_ready("worker")
    wait_for_pods()


def _replace_all(ground: Ground, wait_for_pods: Some, **revision: str) -> None:
    """Replace every pod by one of the new template, whose environment is ``revision``."""
    for ordinal in reversed(range(REPLICAS)):
        _terminate(ground, ordinal)
        _start(ground, ordinal, **revision)
        wait_for_pods()


def _break_and_roll_back(ground: Ground, wait_for_pods: Some) -> None:
    """Start one pod with a template that can't start, while the others work on; then give it the template before."""
    last = REPLICAS - 1
    _terminate(ground, last)
    ground.start_worker(_name_pod(last), SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS="nonsense")
    wait_for_pods()
    if not ground.ends(_name_pod(last)):
        raise AssertionError("a worker with a wrong setting runs")
    wait_for_pods()
    _start(ground, last)
    wait_for_pods()


def _start(ground: Ground, ordinal: int, **revision: str) -> None:
    ground.start_worker(_name_pod(ordinal), **revision)
    ground.wait_ready(_name_pod(ordinal))


def _terminate(ground: Ground, ordinal: int) -> None:
    status = ground.processes.stop(_name_pod(ordinal), GRACE_SECONDS)
    if status:
        raise AssertionError(f"{_name_pod(ordinal)} did not end by itself within {GRACE_SECONDS} s: {status}")


def _name_pod(ordinal: int) -> str:
    return f"{NAME}-{ordinal}"

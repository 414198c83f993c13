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
    """Scaled up from one worker to three, rolled out, broken and rolled back, scaled down to one."""

    def some_pods() -> None:
        load.wait_for(len(load.answers) + chance.randint(3, 8))

    ground.processes.stop("worker")
    _start(ground, 0)
    some_pods()
    # Parallel: all of them at once.
    for ordinal in range(1, REPLICAS):
        ground.start_worker(_pod(ordinal))
    for ordinal in range(1, REPLICAS):
        ground.wait_ready(_pod(ordinal))
    some_pods()
    _replace_all(ground, some_pods, SCHEDULERLOG_COUNT_INTERVAL="1")
    _break_and_roll_back(ground, some_pods)
    for ordinal in reversed(range(1, REPLICAS)):
        _terminate(ground, ordinal)
    some_pods()
    _terminate(ground, 0)
    ground.start_worker()
    ground.wait_ready("worker")
    some_pods()


def _replace_all(ground: Ground, some_pods: Some, **revision: str) -> None:
    """Every pod gets the new template, whose environment is ``revision``."""
    for ordinal in reversed(range(REPLICAS)):
        _terminate(ground, ordinal)
        _start(ground, ordinal, **revision)
        some_pods()


def _break_and_roll_back(ground: Ground, some_pods: Some) -> None:
    """The first pod of a template that can't start ends, the others work on; then it gets the template before."""
    last = REPLICAS - 1
    _terminate(ground, last)
    ground.start_worker(_pod(last), SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS="nonsense")
    some_pods()
    if not ground.ended(_pod(last)):
        raise AssertionError("a worker with a wrong setting runs")
    some_pods()
    _start(ground, last)
    some_pods()


def _start(ground: Ground, ordinal: int, **revision: str) -> None:
    ground.start_worker(_pod(ordinal), **revision)
    ground.wait_ready(_pod(ordinal))


def _terminate(ground: Ground, ordinal: int) -> None:
    status = ground.processes.stop(_pod(ordinal), GRACE_SECONDS)
    if status:
        raise AssertionError(f"{_pod(ordinal)} did not end by itself within {GRACE_SECONDS} s: {status}")


def _pod(ordinal: int) -> str:
    return f"{NAME}-{ordinal}"

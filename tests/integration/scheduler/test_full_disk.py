"""A scheduler whose spool is on a disk that is full: it decides, names the disk, and Kafka has all decisions."""

import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from schemas.topics import DECISIONS
from tests.support.backends import Addresses
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.decisions_in_kafka import find_lacking
from tests.support.harness.scheduler_process import SchedulerProcess, a_refused_pod, read_topic
from tests.support.harness.small_disk import can_mount, filled, mounted
from tests.support.harness.topics import provision_all

NAMESPACE, LIMITED = "full-disk", "file-size"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    if not can_mount():
        pytest.skip("a file system of its own can be mounted by root alone")
    with mounted(tmp_path / "disk", 1) as folder:
        yield folder


def get_readiness(scheduler: SchedulerProcess) -> httpx.Response:
    return httpx.get(f"{scheduler.url}/readyz", timeout=30)


async def test_h6_m12_what_is_decided_while_the_disk_is_full_is_in_kafka_afterwards(
    backends: Addresses, small_disk: Path, tmp_path: Path
) -> None:
    await provision_all(backends.bootstrap_servers)
    scheduler = SchedulerProcess(tmp_path, "--kafka", backends.bootstrap_servers)
    scheduler.spool = small_disk / "spool"
    answered = []
    with scheduler, ExitStack() as full:
        for number in range(40):
            if number == 10:
                full.enter_context(filled(small_disk))
            if number == 30:
                problem = get_readiness(scheduler)
                full.close()
            build = a_pod if number % 2 else a_refused_pod
            name = f"pod-{number}"
            answer = scheduler.filter(build(name, namespace=NAMESPACE))
            assert answer["Error"] == "", answer
            answered.append(f"default/{NAMESPACE}/{name}")
        assert problem.status_code == 200, problem.text
        assert "No space left on device" in problem.json()["spool"]
        # Kafka got them from memory; that the disk is there again is seen without a further decision.
        scheduler.wait_until(lambda: get_readiness(scheduler).json()["spool"] == "ok")
        scheduler.wait_until_sent()
        assert scheduler.stop() == 0
    reads = await read_topic(backends.bootstrap_servers, DECISIONS.name, f"default/{NAMESPACE}/")
    assert find_lacking(reads, answered) == {}


async def test_h6_m12_what_is_decided_while_no_file_may_grow_is_in_kafka_afterwards(
    backends: Addresses, tmp_path: Path
) -> None:
    """Files that may not grow, as on a full disk, without the right to mount one: the log can't be written either."""
    await provision_all(backends.bootstrap_servers)
    answered = []
    with SchedulerProcess(tmp_path, "--kafka", backends.bootstrap_servers) as scheduler:
        before = resource.prlimit(scheduler.pid, resource.RLIMIT_FSIZE)
        for number in range(40):
            if number == 10:
                resource.prlimit(scheduler.pid, resource.RLIMIT_FSIZE, (0, before[1]))
            if number == 30:
                problem = get_readiness(scheduler)
                resource.prlimit(scheduler.pid, resource.RLIMIT_FSIZE, before)
            answer = scheduler.filter(a_refused_pod(f"pod-{number}", LIMITED))
            assert answer["Error"] == "", answer
            answered.append(f"default/{LIMITED}/pod-{number}")
        assert problem.status_code == 200, problem.text
        assert "File too large" in problem.json()["spool"]
        scheduler.wait_until(lambda: get_readiness(scheduler).json()["spool"] == "ok")
        scheduler.wait_until_sent()
        assert scheduler.stop() == 0
    reads = await read_topic(backends.bootstrap_servers, DECISIONS.name, f"default/{LIMITED}/")
    assert find_lacking(reads, answered) == {}

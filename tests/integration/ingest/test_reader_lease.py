"""Two processes of one reader with a lease: one reads, the other takes over when it is killed or stopped."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.codec.records import decode
from schemas.events import AttemptEvent
from schemas.topics import DECISIONS
from tests.support.harness.forked import Forked
from tests.support.harness.ingest_process import Replicas, get_versions, wait_until_taken
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import eventually

LOG = Path(__file__).parents[2] / "conformance" / "cases" / "logs" / "048.log"
SCHEDULER = "leased"
GROUP = "schedulerlog-hami-log-leased"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.log"


@pytest.fixture
def replicas(running: Pipeline, log: Path) -> Iterator[Replicas]:
    def start(port: str) -> Forked:
        command = ["ingest", "hami-log", str(log), "--follow", "--scheduler", SCHEDULER, "--lease", GROUP]
        command += ["--metrics-address", port, "--kafka", running.servers.bootstrap_servers]
        with log.with_suffix(f".{port}").open("ab") as output:
            return Forked(*command, stdout=output, stderr=output)

    with Replicas(start) as replicas:
        yield replicas


def count_records(running: Pipeline) -> Counter[str]:
    """Count the records of the reader's attempts by the event's id."""
    events = [decode(record.value, record.headers) for record in running.read_topic(DECISIONS.name)]
    return Counter(event.id for event in events if isinstance(event, AttemptEvent) and event.scheduler == SCHEDULER)


def test_of_two_readers_of_one_log_one_reads_and_the_other_takes_over(
    running: Pipeline, log: Path, replicas: Replicas
) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    log.write_bytes(b"".join(lines[:half]))
    eventually(replicas.find_working, lambda: f"{replicas.read()}")
    eventually(lambda: count_records(running), "the first reader publishes nothing")
    wait_until_taken(running)
    before = count_records(running)
    assert set(before.values()) == {1}
    documents = get_versions(running, {"term": {"scheduler": SCHEDULER}})
    replicas.kill(eventually(replicas.find_working, lambda: f"{replicas.read()}"))
    eventually(replicas.has_ready, lambda: f"{replicas.read()}")
    with log.open("ab") as appended:
        appended.write(b"".join(lines[half:]))
    eventually(lambda: count_records(running).keys() > before.keys(), "the second reader adds nothing")
    wait_until_taken(running)
    after = get_versions(running, {"term": {"scheduler": SCHEDULER}})
    # It reads the log from its start: what was read before has the same ids, and no document changes.
    assert {name: after[name] for name in documents if "-attempts-" in name} == {
        name: version for name, version in documents.items() if "-attempts-" in name
    }
    assert len(after) > len(documents)

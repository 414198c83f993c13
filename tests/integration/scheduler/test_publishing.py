"""From an answer to a record in a real Kafka, across everything that may end in between."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from dev import embedded
from scheduler.publish.spool import frames
from scheduler.publish.spool.frames import Entry
from schemas.codec.records import decode
from schemas.events import AttemptConcluded, BindConcluded, NodeRegistered
from schemas.topics import DECISIONS, NODES
from tests.support.backends import Addresses
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.scheduler_process import (
    Read,
    SchedulerProcess,
    a_refused_pod,
    read_topic,
    read_until,
)
from tests.support.harness.topics import provision_all


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


def read_spooled(folder: Path) -> list[Entry]:
    """Read what lies in the spool's files, in order."""
    paths = sorted(folder.glob("*.spool"))
    return [entry for path in paths for entry in frames.decode_entries(path.read_bytes())]


def count_conclusions(reads: list[Read], pod: str) -> int:
    """Count the different conclusions that were read about a pod."""
    return len({read.get_header("ce_id") for read in reads if read.key == pod.encode() and _is_conclusion(read)})


def _is_conclusion(read: Read) -> bool:
    return read.get_header("ce_type") == AttemptConcluded.TYPE


async def test_kafka_gets_exactly_what_was_spooled_in_the_order_of_each_pod(kafka: str, tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--no-publish") as scheduler:
        for number in range(20):
            pod = a_pod(f"pod{number % 5}", namespace="equal", uid=f"equal-{number % 5}")
            answer = scheduler.filter(pod)
            if number == 19:
                assert scheduler.bind(pod, answer["NodeNames"][0]) == {"Error": ""}
        assert scheduler.stop() == 0
    written = [entry for entry in read_spooled(tmp_path / "spool") if entry.topic == DECISIONS.name]
    with SchedulerProcess(tmp_path, "--kafka", kafka) as scheduler:
        all_reads = await read_until(kafka, "default/equal/", {entry.ce_id for entry in written})
    by_key: dict[bytes, list[Read]] = defaultdict(list)
    for read in all_reads:
        by_key[read.key].append(read)
    assert set(by_key) == {entry.record.key for entry in written}
    for key, reads in by_key.items():
        mine = [entry.record for entry in written if entry.record.key == key]
        assert [(read.value, read.headers) for read in reads] == [(record.value, record.headers) for record in mine]
    last = decode(all_reads[-1].value, all_reads[-1].headers) if all_reads else None
    assert any(isinstance(decode(read.value, read.headers), BindConcluded) for read in all_reads), last


async def test_registrations_are_reported_node_by_node(kafka: str, tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--kafka", kafka, "--name", "registering") as scheduler:
        assert scheduler.stop() == 0
    events = [decode(read.value, read.headers) for read in await read_topic(kafka, NODES.name)]
    mine = [event for event in events if isinstance(event, NodeRegistered) and event.scheduler == "registering"]
    assert sorted(event.node for event in mine) == ["node1", "node2", "node3", "node4", "node5"]
    assert {len(event.uuid) for event in mine} == {8}


async def test_the_end_waits_until_kafka_has_the_last_decision(kafka: str, tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--kafka", kafka) as scheduler:
        scheduler.filter(a_refused_pod("last", "ending"))
        assert scheduler.stop() == 0
    assert count_conclusions(await read_topic(kafka, DECISIONS.name, "default/ending/"), "default/ending/last") == 1
    assert read_spooled(tmp_path / "spool") == [] or "0 bytes wait" in (tmp_path / "scheduler.log").read_text()


async def test_a_broker_that_is_away_stops_nothing_and_loses_nothing(
    own_backends: Callable[..., embedded.Backends], tmp_path: Path
) -> None:
    servers = own_backends(only="kafka")
    await provision_all(servers.bootstrap_servers)
    with SchedulerProcess(tmp_path, "--kafka", servers.bootstrap_servers) as scheduler:
        pods = [f"pod{number}" for number in range(60)]
        for number, name in enumerate(pods):
            if number == 20:
                servers.kafka[0].kill()
            if number == 50:
                assert scheduler.sum_metric("schedulerlog_scheduler_spool_bytes") > 0
                assert scheduler.sum_metric("schedulerlog_scheduler_spool_oldest_age_seconds") > 0
                servers.kafka[0].start()
            assert scheduler.filter(a_refused_pod(name, "away"))["FailedNodes"]
        scheduler.wait_until_sent()
        assert scheduler.stop() == 0
    reads = await read_topic(servers.bootstrap_servers, DECISIONS.name, "default/away/")
    assert {name: count_conclusions(reads, f"default/away/{name}") for name in pods} == dict.fromkeys(pods, 1)


async def test_a_missing_topic_is_named_with_the_way_out_and_waited_for(
    own_backends: Callable[..., embedded.Backends], tmp_path: Path
) -> None:
    servers = own_backends(only="kafka")
    with SchedulerProcess(tmp_path, "--kafka", servers.bootstrap_servers) as scheduler:
        assert scheduler.filter(a_refused_pod("early", "topics"))["FailedNodes"]
        scheduler.wait_until(lambda: "pipeline provision" in scheduler.log.read_text())
        assert DECISIONS.name in scheduler.log.read_text()
        await provision_all(servers.bootstrap_servers)
        scheduler.wait_until_sent()
        assert (
            count_conclusions(await read_topic(servers.bootstrap_servers, DECISIONS.name), "default/topics/early") == 1
        )
        assert "Traceback" not in scheduler.log.read_text()

"""The process of the placements on a real broker and index: killed at any time, and reading all of it again."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from dev.demo.processes import find_free_ports
from schemas.codec.chunking import split
from schemas.codec.records import decode, encode
from schemas.documents.placements import read_placement
from schemas.events import (
    BindOutcome,
    Event,
    FindingReported,
    NodeRegistered,
    PickedDevice,
    PodObserved,
    PodRef,
)
from schemas.ids import count_microseconds, derive_attempt_id
from schemas.placements import PodPlacement
from schemas.topics import ATTEMPTS, FINDINGS, NODES, PODS, Topic
from tests.support.builders.events import a_request, a_summary
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

HOUR_AGO = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
NODE_COUNT, DEVICES_PER_NODE = 5, 4

Sent = tuple[Topic, Event]


@pytest.fixture
def running(provisioned: Pipeline) -> Iterator[Pipeline]:
    yield provisioned
    provisioned.stop_all()


def to_time(seconds: float) -> datetime:
    return HOUR_AGO + timedelta(seconds=seconds)


def build_pod_ref(number: int, generation: int = 1) -> PodRef:
    return PodRef(namespace="who", name=f"pod-{number}", uid=f"uid-{number}-{generation}")


def derive_device(number: int) -> tuple[str, str]:
    """Derive node and device of a pod: one for each."""
    return f"node{number % NODE_COUNT}", f"GPU-{number % NODE_COUNT}-{number // NODE_COUNT % DEVICES_PER_NODE}"


def a_registration(node: int) -> Sent:
    uuids = [f"GPU-{node}-{number}" for number in range(DEVICES_PER_NODE)]
    same: dict[str, list[Any]] = {
        "model": ["A100"], "mode": ["hami-core"], "memory_mib": [40_960], "cores_percent": [100], "slots": [10],
        "numa": [0], "healthy": [True],
    }  # fmt: skip
    event = NodeRegistered(
        cluster="default", node=f"node{node}", observed_at=to_time(-60), scheduler="hami-scheduler", registered=True,
        uuid=uuids, index=list(range(DEVICES_PER_NODE)),
        **{name: values * DEVICES_PER_NODE for name, values in same.items()},
    )  # fmt: skip
    return NODES, event


def bound(ref: PodRef, node: str, uuid: str, seconds: float, memory_mib: int = 10_240, **fields: Any) -> list[Sent]:
    """Build the records as the worker publishes them: first without the bind, then with it."""
    started, ended = to_time(seconds - 2), to_time(seconds)
    picked = PickedDevice(container=0, uuid=uuid, model="A100", memory_mib=memory_mib, cores_percent=25)
    plain: dict[str, Any] = {
        "attempt_id": derive_attempt_id("default", "hami-scheduler", ref.uid, started), "pod": ref,
        "started_at": started,
        "version": count_microseconds(ended), "status": "succeeded", "chosen": node, "picked_devices": [uuid],
        "picked": [picked], "requests": [a_request(count=1)],
    }  # fmt: skip
    bind = BindOutcome(node=node, bound=True, ended_at=ended)
    first = a_summary([node], **(plain | {"version": count_microseconds(started), "status": "pending"}))
    second = a_summary([node], **(plain | {"bind": bind} | fields))
    return [(ATTEMPTS, part) for summary in (first, second) for part in split(summary)]


def build_observation(ref: PodRef, node: str, seconds: float, phase: str = "Running", **fields: Any) -> Sent:
    return PODS, PodObserved(cluster="default", pod=ref, observed_at=to_time(seconds), phase=phase, node=node, **fields)


def build_timelines(count: int) -> tuple[list[Sent], dict[tuple[str, str], tuple[Any, ...]]]:
    """Build records, and the placements that follow: pods that run on, end, are deleted, or are replaced."""
    records = [a_registration(node) for node in range(NODE_COUNT)]
    expected: dict[tuple[str, str], tuple[Any, ...]] = {}
    for number in range(count):
        (node, uuid), begins, ref = derive_device(number), number * 10.0, build_pod_ref(number)
        records += [
            *bound(ref, node, uuid, begins),
            build_observation(ref, node, begins + 2),
            build_observation(ref, node, begins + 3),
        ]
        ends: dict[int, tuple[float | None, str]] = {
            0: (None, ""), 1: (begins + 5, "Succeeded"), 2: (begins + 6, "deleted"), 3: (begins + 300, "replaced"),
        }  # fmt: skip
        until, how = ends[number % 4]
        if how == "Succeeded":
            records += [
                build_observation(ref, node, begins + 5, "Succeeded"),
                build_observation(ref, node, begins + 50, "Succeeded", deleted=True),
            ]
        elif how == "deleted":
            records.append(build_observation(ref, node, begins + 6, deleted=True))
        elif how == "replaced":
            records += bound(build_pod_ref(number, 2), node, uuid, begins + 300)
            expected[ref.name, build_pod_ref(number, 2).uid] = (node, (uuid,), begins + 300, None, "")
        expected[ref.name, ref.uid] = (node, (uuid,), begins, until, how)
    return records, expected


def send(running: Pipeline, records: Sequence[Sent]) -> None:
    asyncio.run(_send(running.servers.bootstrap_servers, records))


async def _send(servers: str, records: Sequence[Sent]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        for topic, event in records:
            record = encode(event)
            await producer.send(topic.name, record.value, key=record.key, headers=record.headers)
        await producer.flush()


def read_placements(running: Pipeline) -> dict[tuple[str, str], tuple[Any, ...]]:
    placements = {}
    for document_id, document in read_documents(running, "schedulerlog-occupancy").items():
        placement = read_placement(document_id, document["_source"])
        assert isinstance(placement, PodPlacement)
        ended = (placement.ended_at - HOUR_AGO).total_seconds() if placement.ended_at else None
        devices = tuple(allocation.uuid for allocation in placement.allocations)
        started = (placement.started_at - HOUR_AGO).total_seconds()
        placements[placement.pod.name, placement.pod.uid] = (
            placement.node,
            devices,
            started,
            ended,
            placement.ended_by,
        )
    return placements


def read_documents(running: Pipeline, alias: str) -> dict[str, Any]:
    """Read id to hit, with its version and the number of the write that made it."""
    url = f"{running.servers.opensearch_url}/{alias}"
    try:
        httpx.post(f"{url}/_refresh", params={"allow_no_indices": "true"}, timeout=30)
        body = {"size": 10_000, "query": {"match_all": {}}, "version": True, "seq_no_primary_term": True}
        answer = httpx.post(f"{url}/_search", json=body, timeout=30).json()
    except httpx.TransportError:
        return {}
    return {f"{hit['_index']}/{hit['_id']}": hit for hit in answer.get("hits", {}).get("hits", [])}


def list_nodes_as_stored(running: Pipeline) -> list[str]:
    """List the node of each placement in the order in which the index stores them."""
    url = f"{running.servers.opensearch_url}/schedulerlog-occupancy"
    for path in ("_forcemerge?max_num_segments=1", "_refresh"):
        httpx.post(f"{url}/{path}", timeout=60).raise_for_status()
    body = {"size": 10_000, "sort": ["_doc"], "_source": ["node"]}
    hits = httpx.post(f"{url}/_search", json=body, timeout=30).json()["hits"]["hits"]
    return [hit["_source"]["node"] for hit in hits]


def read_everything(running: Pipeline) -> dict[str, Any]:
    aliases = ("schedulerlog-occupancy", "schedulerlog-observations", "schedulerlog-findings")
    return {id_: hit for alias in aliases for id_, hit in read_documents(running, alias).items()}


def read_findings(running: Pipeline) -> list[FindingReported]:
    events = [decode(record.value, record.headers) for record in running.read_topic(FINDINGS.name)]
    return [event for event in events if isinstance(event, FindingReported)]


def count_taken(running: Pipeline) -> float:
    return running.sum_metric("schedulerlog_placements_records_total")


def test_placements_are_known_however_often_the_process_is_killed(running: Pipeline) -> None:
    records, expected = build_timelines(60)
    running.start_placements()
    for cut in range(3):
        lot = records[cut * len(records) // 3 : (cut + 1) * len(records) // 3]
        # Sightings are read before the binds.
        send(running, sorted(lot, key=lambda record: record[0] is ATTEMPTS))
        time.sleep(0.3 * cut)
        running.processes.kill("placements")
        running.start_placements()
    assert until(lambda: read_placements(running), lambda placements: placements == expected) == expected
    stored = list_nodes_as_stored(running)
    assert stored == sorted(stored)
    assert len({*stored}) == NODE_COUNT
    # A pod that is seen twice in the same state is observed once.
    observed = read_documents(running, "schedulerlog-observations")
    running_once = [hit for hit in observed.values() if hit["_source"].get("phase") == "Running"]
    assert len([hit for hit in running_once if not hit["_source"]["event"]["deleted"]]) == 60
    before = read_everything(running)
    assert not [hit for hit in before.values() if hit["_index"].startswith("schedulerlog-findings")]
    running.processes.stop("placements")

    running.start_placements("--group", "from-zero")
    topics = (ATTEMPTS, PODS, NODES)
    count = sum(len(running.read_topic(topic.name)) for topic in topics)
    assert until(lambda: count_taken(running), lambda read: read >= count) == count
    running.settle_group("from-zero", topics)
    assert read_everything(running) == before


def test_of_two_processes_one_works_and_the_other_takes_over_from_it(running: Pipeline) -> None:
    ends = [PodRef(namespace="lease", name=name, uid=f"uid-{name}") for name in ("one", "two", "three")]
    waiting = replace(running, port=int(find_free_ports("waiting")["waiting"]))
    running.start_placements()
    running.processes.start("waiting", "pipeline", "placements", "--metrics-address", str(waiting.port))

    def get_readiness(port: int) -> tuple[int, str]:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5)
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.text

    another = (503, "waiting for the lease: another process works\n")
    assert until(lambda: get_readiness(waiting.port), lambda answer: answer == another) == another
    send(running, bound(ends[0], "node8", "GPU-8-0", 10))
    assert until(lambda: ("one", "uid-one") in read_placements(running))
    assert get_readiness(waiting.port) == another
    assert waiting.sum_metric("schedulerlog_placements_records_total") == 0
    # Stopped and not killed: when it continues it finds that another one works, and waits.
    os.kill(running.processes.get_pid("placements"), signal.SIGSTOP)
    send(running, bound(ends[1], "node8", "GPU-8-1", 20))
    assert until(lambda: ("two", "uid-two") in read_placements(running))
    waiting.wait_ready("waiting")
    os.kill(running.processes.get_pid("placements"), signal.SIGCONT)
    # The group may give the lease back to it, but to one of them alone.
    ports = {"placements": running.port, "waiting": waiting.port}

    def list_holders() -> list[str]:
        answers = {name: get_readiness(port) for name, port in ports.items()}
        return [name for name in answers if answers[name][0] == 200] if another in answers.values() else []

    (holder,) = until(list_holders, bool)
    running.processes.kill(holder)
    send(running, bound(ends[2], "node8", "GPU-8-2", 30))
    assert until(lambda: ("three", "uid-three") in read_placements(running))
    (other,) = ports.keys() - {holder}
    assert until(lambda: get_readiness(ports[other])[0], lambda status: status == 200) == 200


def test_a_device_given_to_two_pods_is_reported_once_however_often_the_process_is_killed(running: Pipeline) -> None:
    first, second = (PodRef(namespace="over", name=name, uid=f"uid-{name}") for name in ("first", "second"))
    node = "node7"
    records = [(NODES, event.model_copy(update={"node": node})) for _, event in [a_registration(7)]]
    records += [
        *bound(first, node, "GPU-7-0", 10, 30_720),
        *bound(second, node, "GPU-7-0", 20, 20_480, scheduler="other"),
    ]
    running.start_placements()
    send(running, records)

    def list_overcommitted() -> list[FindingReported]:
        return [finding for finding in read_findings(running) if finding.pod.namespace == "over" and finding.device]

    (finding,) = until(list_overcommitted, lambda findings: len(findings) > 0)
    assert (finding.finding, finding.pod, finding.scheduler, finding.found_at) == (
        "Overcommitted", second, "other", to_time(20),
    )  # fmt: skip
    assert finding.numbers == {"memory_total_mib": 40_960, "memory_held_mib": 51_200, "pods": 2}
    assert ["over/first" in line or "over/second" in line for line in finding.evidence] == [True, True]
    # No index writer runs yet: what is on the topic counts as reported.
    running.processes.kill("placements")
    running.start_placements()
    # With the first pod ended, the device is no longer overcommitted and nothing more is reported.
    send(running, [build_observation(first, node, 40, "Failed")])
    assert until(lambda: read_placements(running)["first", "uid-first"][3], lambda end: end == 40.0) == 40.0
    # A later finding shows that everything before it was audited.
    later = [PodRef(namespace="over", name=name, uid=f"uid-{name}") for name in ("third", "fourth")]
    send(running, bound(later[0], node, "GPU-7-1", 50, 30_720))
    send(running, bound(later[1], node, "GPU-7-1", 60, 20_480))
    both = until(list_overcommitted, lambda findings: len(findings) > 1)
    # The two pods may lie in two partitions, between which a reader sees no order.
    of_first, of_later = sorted(both, key=lambda event: event.found_at)
    assert of_first == finding
    assert of_later.pod == later[1]

    running.start_index()

    def list_indexed() -> list[str]:
        hits = read_documents(running, "schedulerlog-findings").values()
        return sorted(hit["_source"]["pod"] for hit in hits if hit["_source"]["namespace"] == "over")

    assert until(list_indexed, lambda pods: len(pods) > 1) == ["fourth", "second"]


def test_records_that_say_nothing_are_dead_lettered_and_their_neighbours_taken(running: Pipeline) -> None:
    ref = PodRef(namespace="odd", name="after", uid="uid-odd")
    running.start_placements()
    before = len(running.read_topic("schedulerlog.dead-letters"))
    late = PodObserved(
        cluster="default", pod=ref, observed_at=datetime.now(UTC) + timedelta(days=400), phase="Running", node="node1"
    )
    asyncio.run(_send_bytes(running.servers.bootstrap_servers, b"{"))
    send(running, [(PODS, late), build_observation(ref, "node1", 5)])
    assert until(lambda: ("after", "uid-odd") in read_placements(running), bool)
    assert len(running.read_topic("schedulerlog.dead-letters")) == before + 2


def test_while_the_broker_is_away_no_time_passes_for_audits_and_readiness_names_it(running: Pipeline) -> None:
    running.start_placements()
    lag = "schedulerlog_placements_lag_seconds"
    assert until(lambda: 0 < running.sum_metric(lag) < 10)
    running.servers.kafka[0].kill()
    assert until(lambda: re.match(r"waiting for Kafka for \d+ s: .", running.get_readiness())), running.get_readiness()
    assert until(lambda: running.sum_metric(lag) > 15)
    running.servers.kafka[0].start()
    assert until(lambda: running.get_readiness() == "ok\n"), running.get_readiness()
    assert until(lambda: running.sum_metric(lag) < 10)


async def _send_bytes(servers: str, value: bytes) -> None:
    headers = [("ce_type", PodObserved.TYPE.encode())]
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(PODS.name, value, key=b"odd/after", headers=headers)

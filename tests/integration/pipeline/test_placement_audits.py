"""Placements that can't be right are found by the process and reported once, also when it reads again: real servers."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaProducer

from dev import embedded
from engine.summaries.placement_auditor import LATE
from pipeline.placements.process import GRACE
from schemas.codec.chunking import split
from schemas.codec.records import decode, encode
from schemas.events import (
    AttemptConcluded,
    BindOutcome,
    Event,
    FindingReported,
    NodeChecked,
    NodeProblem,
    NodeRegistered,
    PodObserved,
    PodRef,
)
from schemas.ids import count_microseconds, derive_attempt_id
from schemas.topics import ATTEMPTS, DECISIONS, FINDINGS, NODES, PODS, Topic
from tests.support.builders.events import a_request, a_summary
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.waiting import until

Sent = tuple[Topic, Event]
AGO: Final = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=20)
SCHEDULER: Final = "hami-scheduler"
POOLS: Final = {"SCHEDULERLOG_NODE_POOLS": "a100=a100-*,t4=t4-*", "SCHEDULERLOG_EXPECTED_POOLS": "who=a100"}


@pytest.fixture
def running(servers: embedded.Backends, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(tmp_path, servers, **POOLS) as running:
        yield running


def to_time(seconds: float) -> datetime:
    return AGO + timedelta(seconds=seconds)


def a_pod(name: str) -> PodRef:
    return PodRef(namespace="who", name=name, uid=f"uid-{name}")


def bound(name: str, node: str) -> list[Sent]:
    """Build a pod that was judged at 0 s and bound at 10 s, with the node's one device."""
    uuid, pod = f"GPU-{node}", a_pod(name)
    plain: dict[str, Any] = {
        "attempt_id": derive_attempt_id("default", SCHEDULER, pod.uid, to_time(0)), "pod": pod,
        "started_at": to_time(0), "ended_at": to_time(1),
        "version": count_microseconds(to_time(10)), "status": "succeeded", "chosen": node, "picked_devices": [uuid],
        "requests": [a_request(count=1)], "bind": BindOutcome(node=node, bound=True, ended_at=to_time(10)),
    }  # fmt: skip
    return [(ATTEMPTS, part) for part in split(a_summary([node], **plain))]


def build_conclusion(name: str, node: str) -> Sent:
    """Build the end of a filter whose bind is not reported."""
    pod = a_pod(name)
    event = AttemptConcluded(cluster="default",
        attempt_id=derive_attempt_id("default", SCHEDULER, pod.uid, to_time(0)), pod=pod, scheduler=SCHEDULER,
        started_at=to_time(0), ended_at=to_time(1),
        requests=[a_request(count=1)], offered_nodes=0, judged_nodes=0, judged_devices=0, device_records=0,
        node_records=0, chosen=node,
    )  # fmt: skip
    return DECISIONS, event


def build_observation(name: str, node: str, seconds: float) -> Sent:
    return PODS, PodObserved(
        cluster="default",
        pod=a_pod(name),
        observed_at=to_time(seconds),
        phase="Running" if node else "Pending",
        node=node,
    )


def build_registration(node: str, seconds: float, memory_mib: int) -> Sent:
    event = NodeRegistered(cluster="default",
        node=node, observed_at=to_time(seconds), scheduler=SCHEDULER, registered=True, uuid=[f"GPU-{node}"],
        model=["A100"], mode=["hami-core"], index=[0], memory_mib=[memory_mib], cores_percent=[100], slots=[10],
        numa=[0], healthy=[True],
    )  # fmt: skip
    return NODES, event


def build_check(node: str, seconds: float, *codes: str) -> Sent:
    problems = [NodeProblem(code=code, vendor="NVIDIA", message="of old", handshake_at=to_time(-500)) for code in codes]
    return NODES, NodeChecked(
        cluster="default", node=node, observed_at=to_time(seconds), scheduler=SCHEDULER, problems=problems
    )


AUDIT_LAG: Final = "schedulerlog_placements_lag_seconds"
WRONG: Final = {
    "OutsidePool": ("outside", "t4-1"),
    "StaleHandshake": ("stale", "a100-stale"),
    "UnusableRegistration": ("unusable", "a100-unusable"),
    "MemoryChanged": ("changed", "a100-changed"),
    "BoundNowhere": ("nowhere", "a100-1"),
    "BindUnreported": ("unreported", "a100-2"),
}
RECORDS: Final[Sequence[Sent]] = (
    *(build_registration(node, -200, 40_960) for node in ("a100-changed", "a100-1", "a100-right")),
    build_check("a100-stale", -100, "HandshakeTooOld"),
    build_check("a100-unusable", -100, "RegistrationUnusable"),
    build_check("a100-right", -100, "HandshakeTooOld"),
    build_check("a100-right", -1),
    build_registration("a100-changed", 5, 20_480),
    *(record for finding, where in WRONG.items() if finding != "BindUnreported" for record in bound(*where)),
    *bound("right", "a100-right"),
    build_conclusion("unreported", "a100-2"),
    build_observation("nowhere", "", 70),
    build_observation("unreported", "a100-2", 70),
    build_observation("right", "a100-right", 12),
    build_observation("right", "a100-right", 70),
)


async def send(running: Pipeline, records: Sequence[Sent]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
        for topic, event in records:
            record = encode(event)
            await producer.send(topic.name, record.value, key=record.key, headers=record.headers)
        await producer.flush()


def read_findings(running: Pipeline) -> list[FindingReported]:
    events = [decode(record.value, record.headers) for record in running.read_topic(FINDINGS.name)]
    return [event for event in events if isinstance(event, FindingReported) and event.finding in WRONG]


def read_indexed(running: Pipeline) -> dict[str, Any]:
    try:
        documents = running.get_documents(alias="schedulerlog-findings")
    except Exception:  # noqa: BLE001 - there is no index before the first finding
        return {}
    return {id_: source for id_, source in documents.items() if source["finding"] in WRONG}


def test_each_is_found_once_however_often_the_process_is_killed(running: Pipeline) -> None:
    running.processes.start("worker", "pipeline", "worker")
    running.start_index()
    running.start_placements()
    # Binds are read before the records that contradict them, and the process is killed between them and after them.
    for lot in (sorted(RECORDS, key=lambda record: record[0] is not ATTEMPTS)[half::2] for half in range(2)):
        asyncio.run(send(running, lot))
        running.processes.kill("placements")
        running.start_placements()
    findings = until(lambda: read_findings(running), lambda events: len(events) >= len(WRONG))
    assert {finding.finding: (finding.pod.name, finding.node) for finding in findings} == WRONG
    assert set(Counter(finding.id for finding in findings).values()) == {1}
    assert {
        source["finding"] for source in until(lambda: read_indexed(running), lambda ids: len(ids) == 6).values()
    } == set(WRONG)
    assert all(finding.evidence and finding.numbers for finding in findings)

    running.processes.stop("placements")
    before = read_indexed(running)
    running.start_placements("--group", "from-zero")
    read = sum(len(running.read_topic(topic.name)) for topic in (ATTEMPTS, PODS, NODES))
    assert (
        until(lambda: running.sum_metric("schedulerlog_placements_records_total"), lambda taken: taken >= read) == read
    )
    running.settle_group("from-zero", (ATTEMPTS, PODS, NODES))
    # Once the audits reach the present, which they do one after the other, all of it has been judged again.
    present = (LATE + GRACE).total_seconds() + 60
    reached = until(lambda: running.sum_metric(AUDIT_LAG), lambda seconds: 0 < seconds < present)
    assert 0 < reached < present
    assert until(lambda: running.sum_metric(AUDIT_LAG), lambda seconds: seconds != reached) != reached
    assert len(read_findings(running)) == len(WRONG)
    assert read_indexed(running) == before

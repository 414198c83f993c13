"""Time until a worker continues with the partitions of a killed one, with histories of 100,000 pods."""

import asyncio
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from dev.bench.backends import FOLDER
from dev.bench.report import Figure, Result
from dev.bench.services import start_worker
from dev.demo.processes import Processes
from dev.demo.stack import provisioned
from schemas.codec.records import EncodedRecord, encode
from schemas.events import (
    AttemptConcluded,
    PodHistoryChanged,
    PodRef,
    PublishedAttempt,
    PublishedReport,
    Request,
    SummaryLocation,
)
from schemas.ids import derive_attempt_id
from schemas.topics import ATTEMPTS, DECISIONS, POD_HISTORIES

PODS = 100_000
TRIED = 48
"""Pods that are tried after each kill, on all partitions."""
KILLS = 3
SCHEDULER: Final = "hami-scheduler"
_LOADED: Final = re.compile(r"read (\d+) pod histories of partitions .* in ([\d.]+) s")


def measure_takeover() -> Result:
    """Measure a takeover. Goals: 100,000 pods are read in 5 s; attempts after a kill are published 3 s after it."""
    figures: list[Figure] = []
    for how, session in (("started again", "60"), ("another one takes over", "2")):
        with provisioned(FOLDER / "takeover", SCHEDULERLOG_SESSION_TIMEOUT=session) as (backends, processes):
            servers = backends.bootstrap_servers
            asyncio.run(_fill(servers))
            began = time.monotonic()
            start_worker(processes, "first")
            asyncio.run(_publish_attempts(servers, "warm-up"))
            ready = time.monotonic() - began
            if session == "2":
                start_worker(processes, "second")
                asyncio.run(_publish_attempts(servers, "second"))
            seconds = [_measure_kill(processes, servers, f"{number}", alone=session != "2") for number in range(KILLS)]
            histories, took = _parse_loaded(processes.log("first"))
        note = f"{', '.join(f'{second:.1f}' for second in seconds)}; from its start to the first attempt {ready:.1f} s"
        figures.append(Figure(f"a killed worker is {how}" if session != "2" else how, max(seconds), "s", note=note))
        if session != "2":
            figures.append(Figure(f"{histories:,} pod histories read", took, "s"))
    return Result(
        "takeover",
        f"From the kill of a worker until attempts of {TRIED} pods on all partitions, sent right after it, are "
        "published, the longest of three. Goals: 3 s; 100,000 pods read in 5 s",
        f"{PODS:,} pods known; sessions of 60 s where it is started again, of 2 s where another one takes over",
        tuple(figures),
    )


def _measure_kill(processes: Processes, servers: str, name: str, *, alone: bool) -> float:
    began = time.monotonic()
    processes.kill("first")
    if alone:
        start_worker(processes, "first")
    asyncio.run(_publish_attempts(servers, f"after-{name}"))
    seconds = time.monotonic() - began
    if not alone:
        start_worker(processes, "first")
        asyncio.run(_publish_attempts(servers, f"again-{name}"))
    return seconds


def _parse_loaded(log: Path) -> tuple[int, float]:
    """Parse the number of histories that the first worker read after its first start, and the seconds."""
    histories, took = 0, 0.0
    # A worker reads those of several partitions at a time, when they have their first attempts.
    for count, seconds in _LOADED.findall(log.read_text()):
        histories, took = histories + int(count), took + float(seconds)
        if histories >= PODS:
            break
    return histories, took


async def _fill(servers: str) -> None:
    """Put the histories where a worker would: the partitions follow from the keys of the pods' decisions."""
    async with _create_producer(servers) as producer:
        partitions = sorted(await producer.partitions_for(POD_HISTORIES.name))
        for number in range(PODS):
            record = encode(build_history(number))
            await producer.send(
                POD_HISTORIES.name, record.value, key=record.key, headers=record.headers,
                partition=partitions[number % len(partitions)],
            )  # fmt: skip
        await producer.flush()


def build_history(number: int) -> PodHistoryChanged:
    """Build the history of the pod of that number, which was tried twice."""
    started = datetime.now(UTC)
    name = derive_attempt_id("default", SCHEDULER, f"uid-{number}", started)
    location = SummaryLocation(attempt_id=name, started_at=started, partition=number % 12, offsets=[number])
    report = PublishedReport(source="scheduler", attempt_id=name, version=number, started_at=started)
    attempts = [
        PublishedAttempt(
            attempt_id=name, pod_uid=f"uid-{number}", is_refused=True, first_judged_at=started,
            reports=[report],
            started_at=started - timedelta(minutes=minutes), version=number, status="failed",
            verdict_digest="d" * 32, detail_digest="e" * 32, episode=name, episode_started_at=started,
            may_get_more=False, whole=location,
        )
        for minutes in (0, 5)
    ]  # fmt: skip
    pod = PodRef(namespace="known", name=f"pod-{number}-5d8f9c6b7-x2x{number % 10}", uid=f"uid-{number}")
    return PodHistoryChanged(cluster="default", pod=pod, scheduler=SCHEDULER, published_until=-1, attempts=attempts)


async def _publish_attempts(servers: str, namespace: str) -> None:
    """Send attempts of pods of a namespace; return when all of them are on the topic of attempts."""
    async with AIOKafkaConsumer(
        ATTEMPTS.name, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None
    ) as consumer:
        async with _create_producer(servers) as producer:
            for record in _build_attempts(namespace):
                await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
        keys: set[bytes] = set()
        while len(keys) < TRIED:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                keys.update(event.key for event in records if event.key.startswith(f"default/{namespace}/".encode()))


def _build_attempts(namespace: str) -> Sequence[EncodedRecord]:
    """Build the shortest attempts: no node was offered."""
    now = datetime.now(UTC)
    pods = [PodRef(namespace=namespace, name=f"pod-{number}", uid=f"{namespace}-{number}") for number in range(TRIED)]
    return [
        encode(
            AttemptConcluded(cluster="default",
                attempt_id=derive_attempt_id("default", SCHEDULER, pod.uid, now), pod=pod, scheduler=SCHEDULER,
                started_at=now,
                ended_at=now, requests=[Request(container="main", vendor="NVIDIA", count=1)], offered_nodes=0,
                judged_nodes=0, judged_devices=0, device_records=0, node_records=0, error="no node was offered",
            )
        )
        for pod in pods
    ]  # fmt: skip


def _create_producer(servers: str) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=servers, compression_type="zstd", enable_idempotence=True, linger_ms=5)

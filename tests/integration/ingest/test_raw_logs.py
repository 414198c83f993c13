"""Shipped lines on a real Kafka, read by the real Faust app: no event is lost when it is killed."""

import asyncio
import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from ingest.readers.kai import KaiLog
from schemas.codec.records import decode
from schemas.events import AttemptEvent, NodeStateChanged
from schemas.topics import DECISIONS, NODE_STATES, RAW_LOGS
from tests.support.backends import Addresses
from tests.support.builders.kai_lines import CONSOLE, block, print_lines, read_texts
from tests.support.builders.shipped_lines import FORMS, record
from tests.support.harness.forked import Forked
from tests.support.harness.scheduler_process import read_topic
from tests.support.harness.topics import provision_all

WAIT_SECONDS = 120
BEGINS = "framework/session.go: Session {} with <1> Jobs, <2> Queues and <3> Nodes"


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


@contextlib.contextmanager
def reading(kafka: str, group: str, log: Path) -> Iterator[Forked]:
    command = ["ingest", "raw-logs", "--kafka", kafka, "--group", group, "--containers", "raw-*/scheduler-*/scheduler"]
    with log.open("ab") as output:
        process = Forked(*command, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=120)


NEXT_SESSIONS = [
    line
    for session in ("s7aaaa", "s8aaaa", "s9aaaa")
    for line in print_lines(
        "framework/session.go: Taking cluster snapshot ...", BEGINS.format(session), session=session
    )
]
"""A session is over when three have followed it."""


def log_of(namespace: str) -> list[bytes]:
    return [line.replace(b"team-a/", f"{namespace}/".encode()) for line in [*read_texts(CONSOLE), *NEXT_SESSIONS]]


async def ship(kafka: str, namespace: str, form: str, lines: Sequence[bytes]) -> None:
    """Ship a log's lines as records of its own key, in order."""
    names = (namespace, f"scheduler-{form}", "scheduler")
    producer = AIOKafkaProducer(bootstrap_servers=kafka, enable_idempotence=True)
    await producer.start()
    try:
        for line in lines:
            value = record(form, line.decode(), names=names)
            await producer.send(RAW_LOGS.name, value, key="/".join(names).encode())
        await producer.flush()
    finally:
        await producer.stop()


async def read_event_ids(kafka: str, namespace: str) -> list[str]:
    """Read the ids of all events about pods of the namespace."""
    consumer = AIOKafkaConsumer(DECISIONS.name, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await consumer.start()
    event_ids = []
    try:
        ends = await consumer.end_offsets(list(consumer.assignment()))
        await consumer.seek_to_beginning()
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                mine = [
                    record for record in records if (record.key or b"").startswith(f"default/{namespace}/".encode())
                ]
                event_ids += [getattr(decode(record.value, record.headers), "id", "rejected") for record in mine]
    finally:
        await consumer.stop()
    return event_ids


async def wait_for_all(kafka: str, namespace: str, wanted: int) -> list[str]:
    for _ in range(WAIT_SECONDS * 2):
        event_ids = await read_event_ids(kafka, namespace)
        if len(set(event_ids)) >= wanted:
            break
        await asyncio.sleep(0.5)
    return event_ids


async def test_shipped_lines_give_each_event_also_when_the_reader_is_killed(kafka: str, tmp_path: Path) -> None:
    namespace, group = f"raw-{uuid.uuid4().hex[:8]}", f"raw-{uuid.uuid4().hex[:8]}"
    log = tmp_path / "raw-logs.log"
    lines = log_of(namespace)
    events = list(KaiLog().feed(block(lines)))
    wanted = {event.id for event in events if isinstance(event, AttemptEvent)}
    for form in FORMS:
        await ship(kafka, namespace, form, lines[:150])
    with reading(kafka, group, log) as process:
        assert await wait_for_all(kafka, namespace, 1), log.read_text()
        process.kill()
    for form in FORMS:
        await ship(kafka, namespace, form, lines[150:])
    with reading(kafka, group, log):
        event_ids = await wait_for_all(kafka, namespace, len(wanted))
    # It was shipped three times over: the same decisions are the same events, by whichever agent they were shipped.
    assert set(event_ids) == wanted
    states = await read_topic(kafka, NODE_STATES.name)
    on_topic = {dict(read.headers)["ce_id"].decode() for read in states}
    assert {event.id for event in events if isinstance(event, NodeStateChanged)} <= on_topic

"""Faust's consumer of a worker on a real broker: what it says of partitions in which nothing happened for long."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from dev import embedded
from pipeline.settings import WorkerSettings
from pipeline.worker.faust_app import create_app, is_reading
from runtime.kafka.record import Record
from schemas.topics import DECISIONS
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import eventually_async

TEN_MINUTES = 600.0


async def test_a_partition_that_idled_and_has_a_new_record_is_no_error(
    servers: embedded.Backends, provisioned: Pipeline, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = WorkerSettings.model_validate(
        {"kafka_bootstrap_servers": servers.bootstrap_servers, "consumer_group": "idle", "instance_id": "idle"}
    )
    is_full, is_over = asyncio.Event(), asyncio.Event()

    async def fold(records: AsyncIterator[Record]) -> None:
        async for _ in records:
            is_full.set()
            await is_over.wait()

    async def revoke() -> None: ...

    app = create_app(settings, "idle", tmp_path, fold, revoke)
    await app.start()
    try:
        await eventually_async(lambda: is_reading(app), "the group has assigned no partitions")
        async with AIOKafkaProducer(bootstrap_servers=servers.bootstrap_servers) as producer:
            for _ in range(1_000):
                await producer.send(DECISIONS.name, b"no record of ours", partition=0)
        await is_full.wait()
        caplog.clear()
        caplog.set_level(logging.WARNING)
        for partition in app.consumer.assignment():
            app.consumer.verify_event_path(time.monotonic() + TEN_MINUTES, partition)
        messages = [record.getMessage() for record in caplog.records]
    finally:
        is_over.set()
        await app.stop()
    assert messages == []

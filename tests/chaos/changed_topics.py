"""Faults of Kafka's topics: more partitions, a topic that is deleted and made again, logs that lose their ends."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from runtime.kafka.topics import build_configuration
from schemas.topics import CLOCK, DECISIONS
from tests.chaos.exhaustion import wait_for_pods
from tests.chaos.ground import Ground
from tests.chaos.load import Load
from tests.support.harness.pipeline_process import recreate

ADDED_PARTITIONS: Final = 2


def add_partitions(ground: Ground, load: Load, chance: random.Random) -> None:
    """Add partitions of decisions as docs/operations.md describes: without producers, when everything was read."""
    wait_for_pods(load, chance)
    # It ends when Kafka has its spool.
    ground.processes.stop("scheduler")
    ground.wait_visible(load.namespace, len(load.answers))
    _change_topics(ground, _add_to_decisions)
    ground.processes.run("provision", "pipeline", "provision")
    # The worker reads the partitions when it starts; Kafka shows them to the group of the index writer.
    ground.processes.stop("worker")
    ground.start_worker()
    ground.wait_ready("worker")
    load.retry_only_what_comes()
    ground.start_scheduler()
    for _ in range(3):
        wait_for_pods(load, chance)


def lose_clock_topic(ground: Ground, load: Load, chance: random.Random) -> None:
    """Delete the topic of the clock and make it again, also while worker and index writer start and probe it."""
    wait_for_pods(load, chance)
    topic = NewTopic(CLOCK.name, CLOCK.partitions, len(ground.servers.kafka), None, build_configuration(CLOCK))
    asyncio.run(recreate(ground.servers.bootstrap_servers, topic))
    wait_for_pods(load, chance)
    for name in ground.processes.list_running() & {"worker", "index"}:
        ground.processes.kill(name)
    asyncio.run(recreate(ground.servers.bootstrap_servers, topic))
    ground.start_worker()
    ground.start_index()
    ground.wait_ready("worker")
    ground.wait_ready("index")
    wait_for_pods(load, chance)


def truncate_logs(ground: Ground, load: Load, chance: random.Random) -> None:
    """Cut the ends off the logs of one of three brokers while it is down: it has to take them from the others."""
    wait_for_pods(load, chance)
    broker = chance.choice(ground.servers.kafka)
    broker.kill()
    wait_for_pods(load, chance)
    segments = [path for path in broker.home.glob("data/schedulerlog.*/*.log") if path.stat().st_size]
    for segment in segments:
        os.truncate(segment, chance.randrange(segment.stat().st_size))
    if not segments:
        raise AssertionError(f"{broker.home} has no log to cut")
    broker.start()
    wait_for_pods(load, chance)


async def _add_to_decisions(admin: AIOKafkaAdminClient) -> None:
    (described,) = await admin.describe_topics([DECISIONS.name])
    count = len(described["partitions"]) + ADDED_PARTITIONS
    await admin.create_partitions({DECISIONS.name: NewPartitions(count)})


def _change_topics(ground: Ground, change: Callable[[AIOKafkaAdminClient], Awaitable[None]]) -> None:
    async def connect_and_change() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=ground.servers.bootstrap_servers)
        await admin.start()
        try:
            await change(admin)
        finally:
            await admin.close()

    asyncio.run(connect_and_change())

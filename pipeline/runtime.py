"""What every process of the pipeline does alike: it works until it is told to stop, on topics that are there."""

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from pipeline.sinks.opensearch import NotProvisionedError


async def until_stopped(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until SIGTERM or SIGINT, or until one ends. Raises what that one raised."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await first_of(*works, stop.wait())


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until the first ends; the others are cancelled. Raises what the first raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def administration(servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    """Raises ``KafkaError``, ``OSError``."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def topics_of(servers: str) -> list[str]:
    """Raises ``KafkaError``, ``OSError``."""
    async with administration(servers) as admin:
        return list(await admin.list_topics())


async def partitions_of(
    admin: AIOKafkaAdminClient, names: Sequence[str], also: Sequence[str] = ()
) -> list[TopicPartition]:
    """All of the topics ``names``. Raises ``NotProvisionedError`` where one of them, or of ``also``, is missing;
    ``KafkaError``, ``OSError``."""
    topics = {each["topic"]: each["partitions"] for each in await admin.describe_topics() if not each["error_code"]}
    check_there([*names, *also], topics)
    return [TopicPartition(name, each["partition"]) for name in names for each in topics[name]]


def check_there(wanted: Iterable[str], known: Iterable[str]) -> None:
    """Raises ``NotProvisionedError``: a consumer or producer would make the topic, with the broker's defaults."""
    there = set(known)
    if missing := [name for name in wanted if name not in there]:
        raise NotProvisionedError(f"Kafka has no topic {', '.join(missing)}: run `python -m pipeline provision`")

"""The topic of dead letters as a person uses it: what is there, and putting it back."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from prometheus_client import CollectorRegistry

from pipeline.admin.provision import UnreachableError
from pipeline.dead_letters.codec import original
from pipeline.settings import Settings
from pipeline.sinks.kafka import Outgoing, TopicsSink
from pipeline.sinks.metrics import TopicsMetrics
from schemas.topics import DEAD_LETTERS

Say = Callable[[str], None]


async def list_latest(settings: Settings, limit: int, say: Say) -> None:
    """Say the latest ``limit`` dead letters, oldest first. Raises ``UnreachableError``."""
    latest = [record async for record in _all(settings)][-limit:]
    for record in latest:
        say(line(record))
    if not latest:
        say("no dead letters")


def line(record: Any) -> str:
    """One dead letter on one line; every part of it may be anything, so control characters are shown, not sent."""
    why = {name: value.decode(errors="replace") for name, value in reversed(record.headers)}
    place = "{dead_letter_topic}[{dead_letter_partition}]@{dead_letter_offset}".format_map(_OrUnknown(why))
    key = (record.key or b"").decode(errors="replace")
    said = (
        f"{record.offset}  {why.get('dead_letter_at', '?')}  {place}  key {key[:200]!r}"
        f"  {len(record.value or b'')} bytes  {why.get('dead_letter_cause', '?')[:500]}"
    )
    return _printable(said)


async def show_one(settings: Settings, offset: int, say: Say) -> bool:
    """Say all of the dead letter at ``offset``; False where there is none. Raises ``UnreachableError``."""
    async for record in _all(settings):
        if record.offset == offset:
            for said in lines(record):
                say(said)
            return True
    return False


def lines(record: Any) -> Iterator[str]:
    """One dead letter, whole: why, where, its own headers, key and value, with control characters shown."""
    headers = [(name, value.decode(errors="backslashreplace")) for name, value in record.headers]
    for name, value in headers:
        yield _printable(f"{name}: {value}")
    yield _printable(f"key: {(record.key or b'').decode(errors='backslashreplace')}")
    if record.value is None:
        yield "value: none"
        return
    yield f"value: {len(record.value)} bytes"
    yield _printable(record.value.decode(errors="backslashreplace"))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class _OrUnknown(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "?"


async def replay(settings: Settings, offsets: Collection[int] | None, say: Say) -> None:
    """Send the dead letters at ``offsets`` (None: all) to the topics they came from. Raises ``UnreachableError``."""
    topics = TopicsSink(settings.kafka_bootstrap_servers, TopicsMetrics("dead_letters", CollectorRegistry()))
    count = 0
    try:
        async for record in _all(settings):
            if offsets is not None and record.offset not in offsets:
                continue
            try:
                topic, before = original(record)
            except ValueError as error:
                say(f"left where it is: {error}")
                continue
            await topics.send([Outgoing(topic, before)])
            count += 1
    finally:
        await topics.close()
    say(f"put back {count}")


async def _all(settings: Settings) -> AsyncIterator[Any]:
    """Every dead letter that is there now."""
    consumer = AIOKafkaConsumer(
        DEAD_LETTERS.name,
        bootstrap_servers=settings.kafka_bootstrap_servers,
        auto_offset_reset="earliest",
        group_id=None,
        max_partition_fetch_bytes=DEAD_LETTERS.max_message_bytes,
    )
    try:
        await consumer.start()
        ends = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for partition, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    if record.offset < ends[partition]:
                        yield record
    except (KafkaError, OSError) as error:
        raise UnreachableError(f"Kafka at {settings.kafka_bootstrap_servers}: {error}") from None
    finally:
        await consumer.stop()

"""Commands for dead letters: list them, show one, send them back to their topics."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import aclosing, suppress
from typing import Any, Final

from pipeline.dead_letter import restore_original
from pipeline.sinks.kafka import MAX_REQUEST_BYTES
from runtime.errors import UnreachableError
from runtime.kafka.consumer import connected, create_consumer, read_to_end
from runtime.kafka.errors import UNAVAILABLE, KafkaError, explain_kafka_error
from runtime.kafka.producer import (
    CLOSE_SECONDS,
    DELIVERY_SECONDS,
    create_idempotent_producer,
    hand_over,
    start_producer,
)
from runtime.kafka.record import to_record
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import DEAD_LETTER_HEADERS, DEAD_LETTERS, TOPICS

_REPLAYED: Final = frozenset(topic.name for topic in TOPICS) - {DEAD_LETTERS.name}
Say = Callable[[str], None]


async def list_latest(kafka: KafkaConnection, limit: int, say: Say, *, as_json: bool = False) -> None:
    """Print the latest ``limit`` dead letters, oldest first. Raises ``UnreachableError``."""
    latest: deque[Any] = deque(maxlen=max(limit, 0))
    async for record in _read_all(kafka):
        latest.append(record)
    for record in latest:
        say(to_json_line(record) if as_json else to_line(record))
    if not latest and not as_json:
        say("no dead letters")


def to_json_line(record: Any) -> str:
    """Encode a dead letter as a JSON object: its position, its headers that say why, the key and the length."""
    why = _decode_headers(record)
    texts = {name.removeprefix("dead_letter_"): why.get(name) for name in DEAD_LETTER_HEADERS}
    # ``offset`` is the dead letter's own, as `show` and `replay` take it.
    position = {"offset": record.offset, "record_offset": texts.pop("offset")}
    size = len(record.value or b"")
    return json.dumps(position | texts | {"key": (record.key or b"").decode(errors="replace"), "bytes": size})


def _decode_headers(record: Any) -> dict[str, str]:
    # Reversed, so that the first of equal names wins: ours are in front, the record may have brought the same ones.
    return {name: (value or b"").decode(errors="replace") for name, value in reversed(record.headers)}


def to_line(record: Any) -> str:
    """Show a dead letter on one line. Any part of it may hold control characters, which a terminal would obey: they are
    escaped."""
    why = _decode_headers(record)
    origin = "{dead_letter_topic}[{dead_letter_partition}]@{dead_letter_offset}".format_map(_OrUnknown(why))
    key = (record.key or b"").decode(errors="replace")
    text = (
        f"{record.offset}  {why.get('dead_letter_at', '?')}  {origin}  key {key[:200]!r}"
        f"  {len(record.value or b'')} bytes  {why.get('dead_letter_cause', '?')[:500]}"
    )
    return _escape(text)


async def show_one(kafka: KafkaConnection, offset: int, say: Say) -> bool:
    """Print all of the dead letter at ``offset``; False where there is none. Raises ``UnreachableError``."""
    async for record in _read_all(kafka):
        # The offset identifies a dead letter: their topic has one partition.
        if record.offset == offset:
            for text in to_lines(record):
                say(text)
            return True
    return False


def to_lines(record: Any) -> Iterator[str]:
    """Show all of a dead letter: why, where, its own headers, key and value, with control characters escaped."""
    # Bytes that are not UTF-8 are shown and not replaced: they may be the very cause.
    headers = [(name, value.decode(errors="backslashreplace")) for name, value in record.headers]
    for name, value in headers:
        yield _escape(f"{name}: {value}")
    yield _escape(f"key: {(record.key or b'').decode(errors='backslashreplace')}")
    if record.value is None:
        yield "value: none"
        return
    yield f"value: {len(record.value)} bytes"
    yield _escape(record.value.decode(errors="backslashreplace"))


def _escape(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class _OrUnknown(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "?"


async def replay(kafka: KafkaConnection, offsets: Collection[int] | None, say: Say) -> None:
    """Send the dead letters at ``offsets`` (None: all) to the topics they came from.

    Raises ``UnreachableError``, also where this user may not write such a topic. What was sent before stays sent.
    """
    producer = create_idempotent_producer(kafka, MAX_REQUEST_BYTES)
    count = 0
    try:
        await start_producer(producer)
        # Ends where the topic ended at the start: a record that fails again becomes a new dead letter, which would be
        # replayed without an end.
        async with aclosing(_read_all(kafka)) as letters:
            async for record in letters:
                if offsets is not None and record.offset not in offsets:
                    continue
                try:
                    original = restore_original(to_record(record))
                except ValueError as error:
                    say(f"skipped: {error}")
                    continue
                if original.topic not in _REPLAYED:
                    # Writers of dead letters may lack the right to write every topic that this user may.
                    say(f"skipped: offset {record.offset} names the topic {original.topic[:200]!r}, which is not ours")
                    continue
                # One at a time, each acknowledged before the next: records of one pod keep their order. A service would
                # try without an end; a person waits for this command.
                async with asyncio.timeout(DELIVERY_SECONDS):
                    await (await hand_over(producer, original))
                count += 1
    except UNAVAILABLE as error:
        cause = explain_kafka_error(error)
        raise UnreachableError(f"Kafka at {kafka}: {cause} (replayed {count} before that)") from None
    finally:
        with suppress(*UNAVAILABLE):
            # `stop` sends what is buffered first, which never ends while no broker answers.
            async with asyncio.timeout(CLOSE_SECONDS):
                await producer.stop()
    say(f"replayed {count}")


async def _read_all(kafka: KafkaConnection) -> AsyncGenerator[Any]:
    """Read every dead letter that the topic has now."""
    # Without a group: reading commits nothing, so `list` and `replay` begin at the oldest record each time.
    consumer = create_consumer(kafka, DEAD_LETTERS.name, max_partition_fetch_bytes=DEAD_LETTERS.max_message_bytes)
    try:
        async with connected(consumer):
            async for record in read_to_end(consumer):
                yield record
    except (KafkaError, OSError) as error:
        raise UnreachableError(f"Kafka at {kafka}: {explain_kafka_error(error)}") from None

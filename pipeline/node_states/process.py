"""``python -m pipeline node-states`` as a process: consumes node states, writes them, then commits their offsets."""

from dataclasses import dataclass
from typing import Any, Final

from broker.consumer import Connection, commit, connected, new_consumer, reconnecting
from broker.topics import require, topic_names
from pipeline.node_states.metrics import Metrics
from pipeline.node_states.state_writer import StateWriter
from pipeline.sinks.kafka import topics_sink
from pipeline.sinks.opensearch import OpenSearchSink, client
from process.addresses import HostPort
from process.health import always, serving
from process.signals import until_stopped
from schemas.topics import DEAD_LETTERS, NODE_STATES

MAX_RECORDS: Final = 2_000
"""Of one batch: about 3 MB with eight devices a node."""
_LONGEST_BATCH_SECONDS: Final = 3_600
"""A batch may wait this long for the index before the group gives the partitions to another process."""


@dataclass(frozen=True, slots=True)
class Settings:
    servers: str
    opensearch_url: str
    group: str
    metrics_address: HostPort | None
    max_backoff_seconds: float = 10.0


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` if topics or templates are missing, ``SettingError`` if the metrics address is in
    use.
    """
    await until_stopped(_work(settings))


async def _work(settings: Settings) -> None:
    metrics = Metrics()
    longest_pause = settings.max_backoff_seconds
    index = OpenSearchSink(client(settings.opensearch_url), metrics.index, max_backoff_seconds=longest_pause)
    topics = topics_sink(settings.servers, metrics.topics, longest_pause)
    writer = StateWriter(index, topics, metrics)
    connection = Connection(longest_pause)

    async def session() -> None:
        require([NODE_STATES.name, DEAD_LETTERS.name], await topic_names(settings.servers))
        consumer = new_consumer(
            settings.servers, NODE_STATES.name, group=settings.group, max_poll_interval_ms=_LONGEST_BATCH_SECONDS * 1000
        )
        async with connected(consumer):
            connection.established()
            await _read(consumer, writer)

    def ready() -> str:
        return "waiting for OpenSearch" if index.is_waiting else connection.waiting_for()

    with serving(settings.metrics_address, metrics.registry, always, ready):
        try:
            # Before anything is read: without its template a new index would guess the mapping of its fields.
            await index.check()
            await reconnecting(session, connection)
        finally:
            await topics.close()
            await index.close()


async def _read(consumer: Any, writer: StateWriter) -> None:
    while True:
        found = await consumer.getmany(timeout_ms=1_000, max_records=MAX_RECORDS)
        if found:
            await writer.write([record for records in found.values() for record in records])
            # After every state is in the index: a crash before this line reads them again, which changes nothing.
            await commit(consumer, found)

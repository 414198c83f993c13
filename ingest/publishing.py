"""Publishes what a reader makes of a log to Kafka."""

from collections.abc import AsyncIterator

from ingest.checkpoint import Checkpoint
from ingest.errors import MistakeError
from ingest.kafka import KafkaSink
from ingest.metrics import Metrics
from ingest.options import LogOptions
from ingest.protocol import LogReader
from ingest.pump import LinesRead, run
from process import variables
from process.health import always, serving


async def publish(
    name: str, asked: LogOptions, reader: LogReader, checkpoint: Checkpoint | None, found: AsyncIterator[LinesRead]
) -> None:
    """Send the events of the lines that are found; ``name`` is that of the command, in metrics."""
    metrics, sink = Metrics(name), KafkaSink(servers_of(asked.kafka))
    with serving(asked.metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            await run(found, reader, sink, metrics.note, checkpoint)


def servers_of(kafka: str | None) -> str:
    """Raises ``MistakeError`` where neither the option nor the environment names a broker."""
    if kafka:
        return kafka
    raise MistakeError(f"where is Kafka? Give --kafka HOST:PORT or ${variables.KAFKA}, or ask a log --explain POD")

"""Publishes what a reader makes of a log to Kafka."""

from collections.abc import AsyncIterator

from ingest.reading.checkpoint import Checkpoint
from ingest.reading.kafka import KafkaSink
from ingest.reading.metrics import Metrics
from ingest.reading.options import IngestSettings
from ingest.reading.protocol import LogReader
from ingest.reading.pump import LinesRead, run
from runtime.telemetry.health import always, serving


async def publish(
    name: str,
    settings: IngestSettings,
    reader: LogReader,
    checkpoint: Checkpoint | None,
    found: AsyncIterator[LinesRead],
) -> None:
    """Send the events of the lines that are found; ``name`` is that of the command, in metrics."""
    metrics, sink = Metrics(name), KafkaSink(settings.kafka)
    with serving(settings.metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            await run(found, reader, sink, metrics.note, checkpoint)

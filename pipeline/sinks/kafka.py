"""The topics that the pipeline writes."""

from typing import Final

from broker.producer import TopicsSink
from pipeline.sinks.metrics import TopicsMetrics
from process.kafka_connection import KafkaConnection
from schemas.topics import DEAD_LETTERS

__all__ = ["TopicsSink", "topics_sink"]

# A dead letter is the record itself and its headers: a MiB more leaves space for these.
_MAX_REQUEST_BYTES: Final = DEAD_LETTERS.max_message_bytes + 1024 * 1024


def topics_sink(kafka: KafkaConnection, metrics: TopicsMetrics, max_backoff_seconds: float = 10.0) -> TopicsSink:
    """A sink that takes the longest dead letter; repeated sends count in ``metrics``."""
    return TopicsSink(
        kafka,
        _MAX_REQUEST_BYTES,
        count_retry=metrics.publish_retries.inc,
        max_backoff_seconds=max_backoff_seconds,
    )

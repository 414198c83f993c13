"""The topics that the pipeline writes."""

import logging
from datetime import UTC, datetime
from typing import Final

from pipeline.dead_letter import to_dead_letter
from pipeline.metrics import TopicsMetrics
from runtime.kafka.producer import TopicsSink, count_record_bytes
from runtime.kafka.record import Record, identify_record
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.records import EncodedRecord
from schemas.topics import DEAD_LETTERS

logger = logging.getLogger(__name__)

__all__ = ["MAX_REQUEST_BYTES", "TopicsSink", "create_topics_sink"]

# A dead letter is the record itself and its headers: a MiB more leaves space for these.
MAX_REQUEST_BYTES: Final = DEAD_LETTERS.max_message_bytes + 1024 * 1024


def create_topics_sink(kafka: KafkaConnection, metrics: TopicsMetrics, max_backoff_seconds: float = 10.0) -> TopicsSink:
    """Create a sink that takes the longest dead letter. ``metrics`` counts repeated sends, and records that are too
    large for their topic, which become dead letters."""

    def replace_oversize(record: EncodedRecord) -> EncodedRecord:
        metrics.oversize.inc()
        return _to_dead_letter(record)

    return TopicsSink(
        kafka,
        MAX_REQUEST_BYTES,
        count_retry=metrics.publish_retries.inc,
        instead_of=replace_oversize,
        max_backoff_seconds=max_backoff_seconds,
    )


def _to_dead_letter(record: EncodedRecord) -> EncodedRecord:
    size = count_record_bytes(record)
    logger.error(
        "a record of %d bytes is too large for %s and becomes a dead letter", size, record.topic,
        extra=identify_record(record.headers),
    )  # fmt: skip
    # It has no position yet.
    unsent = Record(record.topic, -1, -1, record.key, record.value, record.headers)
    return to_dead_letter(unsent, f"its {size} bytes are more than {record.topic} takes", datetime.now(UTC))

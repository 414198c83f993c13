"""The line in the log about a record that becomes a dead letter."""

from logging import Logger

from broker.record import about_record
from pipeline.dead_letters.codec import Source


def log_dead_letter(logger: Logger, source: Source, cause: str) -> None:
    """A warning of ``logger``: which record is dead-lettered, and why."""
    logger.warning(
        "dead-lettered %s[%d]@%d: %.500s", source.topic, source.partition, source.offset, cause,
        extra=about_record(source.headers),
    )  # fmt: skip

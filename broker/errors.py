"""The errors of the Kafka client that other packages catch."""

from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError, MessageSizeTooLargeError

__all__ = ["UNAVAILABLE", "CommitFailedError", "IllegalStateError", "KafkaError", "MessageSizeTooLargeError"]

UNAVAILABLE = (KafkaError, OSError, TimeoutError)
"""Kafka does not answer, or not as it should: worth another try."""

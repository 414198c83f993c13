"""The errors of the Kafka client that other packages catch, and their words."""

from typing import Final

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)

__all__ = [
    "UNAVAILABLE",
    "CommitFailedError",
    "IllegalStateError",
    "KafkaError",
    "MessageSizeTooLargeError",
    "explain_kafka_error",
]

UNAVAILABLE = (KafkaError, OSError, TimeoutError)
"""Kafka does not answer, or not as it should: worth another try."""
_FORBIDDEN: Final = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)


def explain_kafka_error(error: Exception) -> str:
    """Put the error into words; for a missing right, add what to do."""
    # Errors of Kafka name their class themselves.
    words = str(error) if isinstance(error, KafkaError) else f"{type(error).__name__}: {error}"
    return f"{words}: give this user the right, docs/security.md lists them" if isinstance(error, _FORBIDDEN) else words

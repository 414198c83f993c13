"""The errors of the Kafka client that other packages catch, and their words."""

from typing import Final

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)

from runtime.refused_credentials import describe_refusal

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
_NO_ANSWER: Final = (
    OSError, TimeoutError, KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError,
)  # fmt: skip
"""Errors of a client without a connection, whatever the reason."""


def explain_kafka_error(error: Exception) -> str:
    """Put the error into words; for a missing right, add what to do.

    For an error that only says that a broker does not answer, add the broker's refusal of a new connection.
    """
    # Errors of Kafka name their class themselves.
    words = str(error) if isinstance(error, KafkaError) else f"{type(error).__name__}: {error}"
    # aiokafka logs the refusal of a connection that ended later, and drops it.
    if isinstance(error, _NO_ANSWER) and (refusal := describe_refusal("Kafka")):
        return f"{refusal} ({words})"
    return f"{words}: give this user the right, docs/security.md lists them" if isinstance(error, _FORBIDDEN) else words

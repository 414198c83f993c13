"""Arguments of ``faust.App`` that all apps share: addresses and credentials of Kafka, and no watchdog of Faust's."""

from typing import Any, Final, cast

from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials

from runtime.kafka.security import create_token_provider
from runtime.settings.kafka_connection import KafkaConnection

_NEVER: Final = 10 * 365 * 86_400.0
"""Seconds after which Faust's watchdog finds a partition stuck. It counts from the last commit: of a healthy app that
idled for five minutes it logs an error for each partition, with advice that does not apply. The worker watches its own
progress (`pipeline.worker.progress`), and the lag of both groups has an alert."""


def build_faust_arguments(kafka: KafkaConnection) -> dict[str, Any]:
    """Build the arguments, of which Faust makes all its clients."""
    brokers = [f"kafka://{server}" for server in kafka.kafka_bootstrap_servers.split(",")]
    return {
        "broker": brokers,
        "broker_credentials": _build_credentials(kafka),
        "stream_processing_timeout": _NEVER,
        "broker_commit_livelock_soft_timeout": _NEVER,
    }


def _build_credentials(kafka: KafkaConnection) -> Any:
    # Faust passes the password on to our connections, which read it.
    context = kafka.kafka_ssl_context
    # Faust takes SASL over TLS from whether there is a context.
    if kafka.kafka_sasl_mechanism == "OAUTHBEARER":
        return OAuthCredentials(oauth_cb=create_token_provider(kafka), ssl_context=context)
    if kafka.uses_sasl:
        return SASLCredentials(
            mechanism=kafka.kafka_sasl_mechanism,
            username=kafka.kafka_username,
            password=cast("Any", kafka.kafka_password),
            ssl_context=context,
        )
    return SSLCredentials(context) if context else None

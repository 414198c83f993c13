"""Connection settings of Kafka as arguments of ``faust.App``: addresses and credentials."""

from typing import Any

from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials

from runtime.kafka.security import build_ssl_context, create_token_provider, reveal_sasl_password
from runtime.settings.kafka_connection import KafkaConnection


def build_faust_arguments(kafka: KafkaConnection) -> dict[str, Any]:
    """Build ``broker`` and ``broker_credentials``. Raises ``KafkaError`` for certificates that can't be read (any
    more).

    Faust makes all its clients of them: with renewed credentials the process creates a new app.
    """
    brokers = [f"kafka://{server}" for server in kafka.kafka_bootstrap_servers.split(",")]
    return {"broker": brokers, "broker_credentials": _build_credentials(kafka)}


def _build_credentials(kafka: KafkaConnection) -> Any:
    context = build_ssl_context(kafka)
    # Faust takes SASL over TLS from whether there is a context.
    if kafka.kafka_sasl_mechanism == "OAUTHBEARER":
        return OAuthCredentials(oauth_cb=create_token_provider(kafka), ssl_context=context)
    if kafka.uses_sasl:
        return SASLCredentials(
            mechanism=kafka.kafka_sasl_mechanism,
            username=kafka.kafka_username,
            password=reveal_sasl_password(kafka),
            ssl_context=context,
        )
    return SSLCredentials(context) if context else None

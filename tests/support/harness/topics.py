"""The topics of a test's broker, as ``provision`` makes them."""

from runtime.kafka.topics import provision_topics
from runtime.settings.kafka_connection import build_kafka_connection


async def provision_all(bootstrap_servers: str) -> None:
    """Create every topic of the contract; one that exists with its configuration is left as it is."""
    await provision_topics(build_kafka_connection(bootstrap_servers), 0, lambda _line: None)

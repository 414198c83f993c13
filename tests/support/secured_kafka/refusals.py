"""Settings with which a Kafka with rules refuses a process, and work that it forbids."""

from collections.abc import Callable
from pathlib import Path

from runtime.kafka.consumer import connected, create_consumer
from runtime.kafka.producer import create_idempotent_producer, start_producer
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import ATTEMPTS, DECISIONS
from tests.support.certificates import Authority
from tests.support.secured_kafka.broker import SecuredKafka
from tests.support.secured_kafka.services import Settings

Refused = tuple[Callable[[SecuredKafka, str, Path], Settings], str, str]
"""The settings of a process, the cause that it names, and what to do."""
REFUSALS: dict[str, Refused] = {
    "a wrong password": (
        lambda kafka, user, _: kafka.use_scram(user, password="wrong"),  # noqa: S106
        "invalid credentials with SASL mechanism SCRAM-SHA-512",
        "SCHEDULERLOG_KAFKA_USERNAME and its password have to be those of a user",
    ),
    "an authority that did not sign the broker's certificate": (
        lambda kafka, user, folder: (
            kafka.use_scram(user) | {"SCHEDULERLOG_KAFKA_CA_FILE": str(Authority(folder, "another").ca_file)}
        ),
        "its certificate is not trusted (unable to get local issuer certificate)",
        "SCHEDULERLOG_KAFKA_CA_FILE has to hold the authority that signed it",
    ),
    "a certificate that has expired": (
        lambda kafka, _, __: kafka.use_certificate("schedulerlog-expired", days=-1),
        "it refuses our certificate",
        "SCHEDULERLOG_KAFKA_CERT_FILE has to be signed by an authority that it trusts, and not expired",
    ),
    "a certificate of another authority": (
        lambda kafka, user, folder: kafka.use_certificate(user, Authority(folder, "another")),
        "it refuses our certificate",
        "SCHEDULERLOG_KAFKA_CERT_FILE has to be signed by an authority that it trusts, and not expired",
    ),
    "a token that has ended": (
        lambda kafka, user, folder: kafka.use_oauth(user, kafka.write_token_file(folder / "token", user, seconds=-100)),
        "the broker refuses the token",
        "Its issuer, audience and end have to be as the broker wants them",
    ),
    "a wrong client secret": (
        lambda kafka, user, _: kafka.use_client_credentials(user, secret="wrong"),  # noqa: S106
        "HTTP 401 without a token invalid_client",
        "SCHEDULERLOG_KAFKA_OAUTH_CLIENT_ID and its secret have to be those of a client that the server knows",
    ),
    "a mechanism that is off": (
        lambda kafka, user, _: kafka.use_scram(user) | {"SCHEDULERLOG_KAFKA_SASL_MECHANISM": "SCRAM-SHA-256"},
        "does not take SCRAM-SHA-256",
        "SCHEDULERLOG_KAFKA_SASL_MECHANISM has to be another",
    ),
    "TLS at a port without it": (
        lambda kafka, user, _: kafka.use_scram(user) | {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": kafka.plain},
        "Connection",
        "SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL is not that of this port",
    ),
    "no TLS at a port with it": (
        lambda kafka, _, __: {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": kafka.tls},
        "closed",
        "SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL is not that of this port",
    ),
}


async def read_decisions(kafka: KafkaConnection) -> None:
    """Read decisions, which needs a right that the API has not."""
    async with connected(create_consumer(kafka, DECISIONS.name)) as consumer:
        await consumer.getmany(timeout_ms=5_000)


async def join_a_group(kafka: KafkaConnection) -> None:
    async with connected(create_consumer(kafka, ATTEMPTS.name, group="strange")) as consumer:
        await consumer.getmany(timeout_ms=5_000)


async def publish(kafka: KafkaConnection) -> None:
    producer = await start_producer(create_idempotent_producer(kafka, 1024))
    try:
        await producer.send_and_wait(ATTEMPTS.name, b"?")
    finally:
        await producer.stop()


FORBIDDEN_TO_THE_API = (read_decisions, join_a_group, publish)

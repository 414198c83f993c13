"""Refusals of new connections, which explain why a client gets no answer."""

from collections.abc import Iterator

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    NodeNotReadyError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)

from runtime import refused_credentials
from runtime.kafka.errors import explain_kafka_error
from runtime.kafka.refusals import ExplainedConnection, RefusedError

WRONG_PASSWORD = SaslAuthenticationFailed("invalid credentials with SASL mechanism SCRAM-SHA-512")


class Broker:
    """Broker that refuses a connection with ``error``, or accepts it."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def connect(self, _connection: object) -> object:
        if self.error:
            raise self.error
        return object()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    broker = Broker()

    async def connect(connection: object) -> object:
        return await broker.connect(connection)

    monkeypatch.setattr(ExplainedConnection.__mro__[1], "connect", connect)
    yield broker
    refused_credentials._by_address.clear()


async def open_connection(port: int = 9093) -> None:
    await ExplainedConnection("kafka", port, sasl_mechanism="SCRAM-SHA-512").connect()


async def test_a_broker_that_gives_no_answer_is_explained_by_its_refusal(broker: Broker) -> None:
    broker.error = WRONG_PASSWORD
    with pytest.raises(RefusedError):
        await open_connection()
    words = explain_kafka_error(NodeNotReadyError("not ready"))
    assert words.startswith(
        "kafka:9093: invalid credentials with SASL mechanism SCRAM-SHA-512. SCHEDULERLOG_KAFKA_USER"
    )
    assert "not ready" in words
    assert "invalid credentials" in explain_kafka_error(TimeoutError("no answer for 10 s"))
    assert "invalid credentials" not in explain_kafka_error(TopicAuthorizationFailedError("decisions"))


async def test_a_broker_that_accepts_a_connection_refuses_no_more(broker: Broker) -> None:
    broker.error = WRONG_PASSWORD
    for port in (9093, 9094):
        with pytest.raises(RefusedError):
            await open_connection(port)
    broker.error = None
    await open_connection(9094)
    assert explain_kafka_error(NodeNotReadyError()).startswith("kafka:9093")
    await open_connection(9093)
    assert "invalid" not in explain_kafka_error(NodeNotReadyError())


async def test_a_refusal_of_long_ago_explains_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.error = WRONG_PASSWORD
    with pytest.raises(RefusedError):
        await open_connection()
    monkeypatch.setattr(refused_credentials, "RECENT_SECONDS", 0.0)
    assert "invalid" not in explain_kafka_error(NodeNotReadyError())


async def test_a_broker_that_hangs_up_may_be_ending_and_explains_nothing(broker: Broker) -> None:
    broker.error = KafkaConnectionError("closed")
    with pytest.raises(RefusedError):
        await open_connection()
    assert explain_kafka_error(TimeoutError("no answer for 10 s")) == "TimeoutError: no answer for 10 s"

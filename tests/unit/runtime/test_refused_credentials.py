"""Refusals of credentials that only a restart reads again."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from aiohttp import web
from aiokafka.errors import SaslAuthenticationFailed

from runtime import refused_credentials
from runtime.cli.cli import one_line_for
from runtime.errors import FixedCredentialsError, SettingError
from runtime.kafka.refusals import ExplainedConnection, RefusedError
from runtime.opensearch.client import create_client
from runtime.refused_credentials import describe_refusal, note_acceptance, note_refusal
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.secret_files import FileSecret
from runtime.signals import run_until_first_ends, run_until_stopped

VARIABLE = "SCHEDULERLOG_KAFKA_PASSWORD"
Pass = Callable[[float], None]


@pytest.fixture(autouse=True)
def pass_seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pass]:
    """Function that moves the clock on."""
    now = [1000.0]
    monkeypatch.setattr(refused_credentials, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(refused_credentials, "_LOOK_SECONDS", 0.01)

    def move(seconds: float) -> None:
        now[0] += seconds

    yield move
    refused_credentials._by_address.clear()
    refused_credentials._by_variable.clear()


async def wait_forever() -> None:
    await asyncio.Event().wait()


async def has_ended() -> bool:
    try:
        await run_until_first_ends(refused_credentials.end_when_refused(), _wait_briefly())
    except FixedCredentialsError:
        return True
    return False


async def _wait_briefly() -> None:
    await asyncio.sleep(0.1)


async def test_a_process_ends_when_its_password_was_refused_for_three_minutes(pass_seconds: Pass) -> None:
    note_refusal("Kafka", "kafka:9093", "kafka:9093: invalid credentials", VARIABLE)
    pass_seconds(179)
    note_refusal("Kafka", "kafka:9093", "kafka:9093: invalid credentials", VARIABLE)
    assert not await has_ended()
    pass_seconds(1)
    note_refusal("Kafka", "kafka:9093", "kafka:9093: invalid credentials", VARIABLE)
    with pytest.raises(FixedCredentialsError, match=r"^kafka:9093: invalid .* 3 minutes, .*KAFKA_PASSWORD"):
        await run_until_stopped(wait_forever())


def test_a_refusal_is_described_until_it_is_old_or_the_credential_accepted(pass_seconds: Pass) -> None:
    assert describe_refusal() == ""
    note_refusal("Kafka", "kafka:9093", "kafka:9093: it refuses our certificate")
    pass_seconds(10)
    note_refusal("OpenSearch", "https://index:9200", "https://index:9200: HTTP 401")
    assert describe_refusal() == "https://index:9200: HTTP 401"
    assert describe_refusal("Kafka") == "kafka:9093: it refuses our certificate"
    note_acceptance("OpenSearch", "https://index:9200")
    assert describe_refusal() == "kafka:9093: it refuses our certificate"
    assert describe_refusal("OpenSearch") == ""
    pass_seconds(50)
    assert describe_refusal() == ""


async def test_success_in_between_begins_the_time_again(pass_seconds: Pass) -> None:
    note_refusal("Kafka", "kafka:9093", "refused", VARIABLE)
    pass_seconds(170)
    note_acceptance("Kafka", "kafka:9094", VARIABLE)
    note_refusal("Kafka", "kafka:9093", "refused", VARIABLE)
    pass_seconds(170)
    note_refusal("Kafka", "kafka:9093", "refused", VARIABLE)
    assert not await has_ended()


def test_a_command_ends_with_one_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, one_line_for(SettingError):
        raise FixedCredentialsError("the password is refused")
    assert (ended.value.exit_code, capsys.readouterr().err) == (1, "the password is refused\n")


def connect_to_kafka(password: object) -> KafkaConnection:
    fields = {
        "kafka_bootstrap_servers": "kafka:9093", "kafka_security_protocol": "sasl_plaintext",
        "kafka_sasl_mechanism": "PLAIN", "kafka_username": "u", "kafka_password": password,
    }  # fmt: skip
    return KafkaConnection.model_validate(fields)


@pytest.mark.parametrize("is_file", [False, True])
async def test_a_broker_that_refuses_a_password_of_a_file_is_waited_for(
    is_file: bool, pass_seconds: Pass, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("x")
    kafka = connect_to_kafka(FileSecret(tmp_path / "password") if is_file else "x")
    is_accepted = False

    async def connect(_connection: object) -> object:
        if is_accepted:
            return object()
        raise SaslAuthenticationFailed("invalid credentials")

    monkeypatch.setattr(ExplainedConnection.__mro__[1], "connect", connect)
    connection = ExplainedConnection("kafka", 9093, sasl_mechanism="PLAIN", sasl_plain_password=kafka.kafka_password)
    for _ in range(2):
        with pytest.raises(RefusedError):
            await connection.connect()
        pass_seconds(200)
    assert await has_ended() == (not is_file)
    with pytest.raises(RefusedError):
        await connection.connect()
    assert "invalid credentials" in describe_refusal()
    is_accepted = True
    await connection.connect()
    assert not await has_ended()
    assert describe_refusal() == ""


@pytest.mark.parametrize(("is_file", "status", "ends"), [(False, 401, True), (True, 401, False), (False, 403, False)])
async def test_an_index_that_refuses_a_password_of_a_file_is_waited_for(
    is_file: bool, status: int, ends: bool, pass_seconds: Pass, tmp_path: Path
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({}, status=status)

    server = web.Application()
    server.router.add_get("/", answer)
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    (tmp_path / "password").write_text("x")
    connection = OpenSearchConnection.model_validate(
        {
            "opensearch_url": f"http://127.0.0.1:{runner.addresses[0][1]}",
            "opensearch_username": "writer",
            "opensearch_password": FileSecret(tmp_path / "password") if is_file else "x",
        }
    )
    try:
        async with create_client(connection) as client:
            for _ in range(2):
                with pytest.raises(Exception, match=str(status)):
                    await client.info()
                pass_seconds(200)
            assert await has_ended() == ends
            status = 200
            await client.info()
            assert not await has_ended()
    finally:
        await runner.cleanup()

"""A broker that can't be asked: the cause and the remedy, by a real connection."""

import asyncio
import ssl
from pathlib import Path

from cli.doctor.findings import Fault
from cli.doctor.kafka import check, find_late_groups
from runtime.kafka.inspection import Backlog
from runtime.settings.kafka_connection import KafkaConnection
from tests.support.certificates import Authority


async def find_fault(tmp_path: Path, **settings: str | Path) -> Fault:
    """Find the only fault of a TLS port that ends every connection."""
    pair = Authority(tmp_path / "own").issue("broker")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ((fault,), _) = await check(KafkaConnection.model_validate({"kafka_bootstrap_servers": address} | settings))
    assert fault.check == "kafka"
    return fault


async def test_an_authority_that_did_not_sign_is_the_cause_and_its_setting_the_remedy(tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "somebody").ca_file
    fault = await find_fault(tmp_path, kafka_security_protocol="ssl", kafka_ca_file=other)
    assert "its certificate is not trusted (" in fault.problem
    assert fault.remedy == "SCHEDULERLOG_KAFKA_CA_FILE has to hold the authority that signed it."


async def test_a_plain_connection_to_a_tls_port_names_the_protocol(tmp_path: Path) -> None:
    fault = await find_fault(tmp_path)
    assert "SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL" in fault.remedy


async def test_a_port_that_refuses_is_reported_as_silent() -> None:
    ((fault,), _) = await check(KafkaConnection(kafka_bootstrap_servers="127.0.0.1:1"))
    assert fault.problem.startswith("does not answer (")
    assert "network policies" in fault.remedy


def test_a_group_with_records_that_are_too_old_is_a_fault() -> None:
    late = Backlog("schedulerlog-index", "schedulerlog.attempts", records=1_250, late_records=1_200)
    (fault,) = find_late_groups([late, Backlog("schedulerlog-trends", "schedulerlog.attempts", 50, 0)])
    assert (fault.check, fault.about) == ("kafka", "group schedulerlog-index")
    assert fault.problem == (
        "has up to 1,250 records of schedulerlog.attempts left to read, 1,200 of them older than 1 minute: what they "
        "hold is in no answer yet"
    )
    assert "/readyz" in fault.remedy

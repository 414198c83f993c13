"""`schedulerlog doctor` against real stores: sound ones, and one fault each."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from cli.doctor.certificates import check_file
from dev import embedded
from runtime.kafka.inspection import Backlog, read_backlogs
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.topics import DECISIONS, TOPICS
from tests.support.backends import Addresses
from tests.support.harness.topics import provision_all

JSON = ("-o", "json")


def run_doctor(*flags: str, **settings: str) -> tuple[int, str]:
    """Exit code and output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCHEDULERLOG_")}
    command = [sys.executable, "-m", "cli.doctor", *flags]
    done = subprocess.run(command, env=clean | settings, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


def parse_findings(output: str) -> list[dict[str, Any]]:
    parsed_findings: list[dict[str, Any]] = json.loads(output)["findings"]
    return parsed_findings


async def set_retention(servers: str, topic: str, milliseconds: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        configs = {"retention.ms": str(milliseconds)}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    finally:
        await admin.close()


def test_topics_are_compared_with_those_that_provision_makes(own_backends: Callable[..., embedded.Backends]) -> None:
    servers = own_backends(only="kafka").bootstrap_servers
    kafka = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": servers}
    code, output = run_doctor(*JSON, **kafka)
    # One cause is one finding, however many topics there are.
    assert (code, [finding["problem"] for finding in parse_findings(output)]) == (
        1,
        [f"none of the {len(TOPICS)} is there"],
    )
    asyncio.run(provision_all(servers))
    assert run_doctor(*JSON, **kafka)[0] == 0
    asyncio.run(set_retention(servers, "schedulerlog.decisions", 1000))
    code, output = run_doctor(*JSON, **kafka)
    assert code == 1
    named = {(finding["about"], finding["problem"].split(",")[0]) for finding in parse_findings(output)}
    assert ("schedulerlog.decisions", "retention.ms is 1000") in named
    assert all("provision" in finding["remedy"] for finding in parse_findings(output))


DECISIONS_0: Final = TopicPartition(DECISIONS.name, 0)


async def write_records(servers: str, count: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(count):
            await producer.send_and_wait(DECISIONS_0.topic, b"{}", partition=0)


async def commit(servers: str, group: str, offset: int) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([DECISIONS_0])
        await consumer.commit({DECISIONS_0: offset})


async def read_groups(servers: str) -> tuple[list[Backlog], list[Backlog]]:
    """Read what groups have left of five records, three of which were written before the time that is asked about."""
    await write_records(servers, 3)
    await asyncio.sleep(0.1)
    between = datetime.now(UTC)
    await asyncio.sleep(0.1)
    await write_records(servers, 2)
    await commit(servers, "schedulerlog-index", 1)
    await commit(servers, "schedulerlog-trends", 4)
    await commit(servers, "another-teams-reader", 0)
    connection, topics = build_kafka_connection(servers), [DECISIONS.name]
    later = datetime.now(UTC) + timedelta(minutes=1)
    return (
        await read_backlogs(connection, "schedulerlog-", topics, between),
        await read_backlogs(connection, "schedulerlog-", topics, later),
    )


def test_what_our_groups_have_left_to_read_is_counted(own_backends: Callable[..., embedded.Backends]) -> None:
    servers = own_backends(only="kafka").bootstrap_servers
    kafka = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": servers}
    asyncio.run(provision_all(servers))
    unseen = "how far our processes have read: no group schedulerlog-* has committed an offset"
    assert unseen in run_doctor(**kafka)[1]
    between, later = asyncio.run(read_groups(servers))
    assert between == [
        Backlog("schedulerlog-index", DECISIONS.name, records=4, late_records=2),
        Backlog("schedulerlog-trends", DECISIONS.name, records=1, late_records=0),
    ]
    assert [(backlog.records, backlog.late_records) for backlog in later] == [(4, 4), (1, 1)]
    # None of them is a minute old.
    code, output = run_doctor(**kafka)
    assert (code, unseen in output) == (0, False)


def test_a_store_that_does_not_answer_is_named() -> None:
    nowhere = {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:1",
    }
    code, output = run_doctor(*JSON, **nowhere)
    assert code == 1
    assert [(finding["check"], finding["about"]) for finding in parse_findings(output)] == [
        ("kafka", "127.0.0.1:1"), ("opensearch", "http://127.0.0.1:1"),
    ]  # fmt: skip


def test_an_index_without_this_versions_templates_is_named(backends: Addresses) -> None:
    code, output = run_doctor(*JSON, SCHEDULERLOG_OPENSEARCH_URL=backends.opensearch_url)
    # Other tests may have provisioned it; a single node without replicas is no finding either way.
    assert {finding["check"] for finding in parse_findings(output)} <= {"opensearch"}
    assert code == bool(parse_findings(output))


def test_without_anything_to_look_at_it_says_so() -> None:
    code, output = run_doctor()
    assert code == 2
    assert "not checked: Kafka: SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set" in output


def test_a_wrong_setting_is_exit_code_two() -> None:
    code, output = run_doctor(SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS="nonsense")
    assert code == 2
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_a_file_without_a_certificate_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "ca.crt").write_text(content)
    assert [fault.about for fault in check_file(tmp_path / "ca.crt")] == [str(tmp_path / "ca.crt")]

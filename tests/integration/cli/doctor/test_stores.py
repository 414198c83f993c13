"""`schedulerlog doctor` against real stores: sound ones, and one fault each."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from cli.doctor.certificates import check_file
from dev import embedded
from schemas.topics import TOPICS
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

"""All checks of what the settings name, side by side."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cli.doctor import certificates, cluster, kafka, opensearch
from cli.doctor.findings import Checkup, Fault
from cli.doctor.settings import Settings
from runtime.kubernetes.credentials import from_kubeconfig, load_service_account
from runtime.settings.addresses import HostPort, parse_host_port
from runtime.settings.kafka_connection import KafkaConnection, KafkaConnectionIfGiven
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.settings import EnvironmentSettings, read
from runtime.settings.variables import KAFKA, derive_variable

_HTTPS_PORT: Final = 443


class _Url(EnvironmentSettings):
    opensearch_url: str | None = None


async def run_checks(settings: Settings, *, in_pod: bool) -> Checkup:
    """Run every check that the settings allow. Raises ``SettingError``."""
    checked: list[str] = []
    skipped: list[str] = []
    works: list[Coroutine[Any, Any, tuple[list[Fault], list[str]]]] = []
    brokers = read(KafkaConnectionIfGiven)
    if brokers.kafka_bootstrap_servers:
        checked.append("Kafka")
        connection = brokers.require_addresses()
        works += [kafka.check(connection), *map(_see_all, _check_kafka_certificates(connection))]
    else:
        skipped.append(f"Kafka: {KAFKA} is not set")
    if read(_Url).opensearch_url:
        checked.append("OpenSearch")
        index = read(OpenSearchConnection)
        works += [opensearch.check(index), *map(_see_all, _check_opensearch_certificates(index))]
    else:
        skipped.append(f"OpenSearch: {derive_variable('opensearch_url')} is not set")
    if settings.kubeconfig or in_pod:
        checked.append("Kubernetes")
        load = from_kubeconfig(settings.kubeconfig, settings.context) if settings.kubeconfig else load_service_account
        works.append(cluster.check(load, settings.namespace))
    else:
        skipped.append("Kubernetes: no --kubeconfig, and this is not a pod")
    results = await asyncio.gather(*works)
    unseen = [line for _, lines in results for line in lines]
    return Checkup([finding for faults, _ in results for finding in faults], checked, [*skipped, *unseen])


async def _see_all(check: Coroutine[Any, Any, list[Fault]]) -> tuple[list[Fault], list[str]]:
    """Run a check that needs no rights."""
    return await check, []


def _check_kafka_certificates(brokers: KafkaConnection) -> list[Coroutine[Any, Any, list[Fault]]]:
    if "ssl" not in brokers.kafka_security_protocol:
        return []
    servers = [parse_host_port(text) for text in brokers.kafka_bootstrap_servers.split(",")]
    return [
        *(certificates.check_server(f"Kafka at {server}", server) for server in servers),
        _check_files(brokers.kafka_ca_file, brokers.kafka_cert_file),
    ]


def _check_opensearch_certificates(index: OpenSearchConnection) -> list[Coroutine[Any, Any, list[Fault]]]:
    parts = [urlsplit(url) for url in index.urls]
    servers = [HostPort(part.hostname or "", part.port or _HTTPS_PORT) for part in parts if part.scheme == "https"]
    return [
        *(certificates.check_server(f"OpenSearch at {server}", server) for server in servers),
        _check_files(index.opensearch_ca_file, index.opensearch_cert_file),
    ]


async def _check_files(*paths: Path | None) -> list[Fault]:
    return [finding for path in paths if path for finding in certificates.check_file(path)]

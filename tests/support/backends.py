"""Sources of the tests' Kafka and OpenSearch: ``SCHEDULERLOG_TEST_BACKENDS``, one setting for all tests.

``embedded`` (the default) starts them on this machine, ``env`` takes the addresses of the environment,
``testcontainers`` starts images: those of SCHEDULERLOG_TEST_KAFKA_IMAGE and SCHEDULERLOG_TEST_OPENSEARCH_IMAGE.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from dev import embedded
from dev.embedded import kafka_probe, opensearch
from dev.embedded.ports import KAFKA_PORTS, find_free_port

SETTING: Final = "SCHEDULERLOG_TEST_BACKENDS"
KAFKA_IMAGE: Final = "apache/kafka:4.3.1"
OPENSEARCH_IMAGE: Final = "opensearchproject/opensearch:3.8.0"
READY_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """``host:port`` with commas between, and a base URL without a slash at its end."""

    bootstrap_servers: str
    opensearch_url: str


def read_source(environment: Mapping[str, str]) -> str:
    """Read the name of the source of this test run."""
    return environment.get(SETTING) or "embedded"


def start_backends() -> AbstractContextManager[Addresses]:
    """Start backends for a whole test run from the chosen source."""
    sources: dict[str, Callable[[], AbstractContextManager[Addresses]]] = {
        "embedded": _embedded,
        "env": _from_environment,
        "testcontainers": containers,
    }
    source = read_source(os.environ)
    if source not in sources:
        raise pytest.UsageError(f"{SETTING}={source!r}: expected one of {', '.join(sources)}")
    return sources[source]()


@contextmanager
def _embedded() -> Iterator[Addresses]:
    with embedded.backends() as running:
        yield Addresses(running.bootstrap_servers, running.opensearch_url)


@contextmanager
def _from_environment() -> Iterator[Addresses]:
    names = ("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS", "SCHEDULERLOG_OPENSEARCH_URL")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise pytest.UsageError(f"{SETTING}=env needs {' and '.join(missing)}")
    yield Addresses(os.environ[names[0]], os.environ[names[1]].rstrip("/"))


@contextmanager
def containers() -> Iterator[Addresses]:
    """Both servers as containers of their own, ready."""
    with _kafka_container() as bootstrap_server, _opensearch_container() as url:
        _wait(lambda: kafka_probe.is_ready(bootstrap_server, node=1), f"Kafka at {bootstrap_server}")
        _wait(lambda: opensearch.is_ready(url), f"OpenSearch at {url}")
        yield Addresses(bootstrap_server, url)


@contextmanager
def _kafka_container() -> Iterator[str]:
    # The broker gives clients its own address, so the port on this side has to be known before it starts.
    port = find_free_port(KAFKA_PORTS)
    variables = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    }
    with _container(os.environ.get("SCHEDULERLOG_TEST_KAFKA_IMAGE") or KAFKA_IMAGE, variables, 9092, port):
        yield f"127.0.0.1:{port}"


@contextmanager
def _opensearch_container() -> Iterator[str]:
    port = find_free_port(KAFKA_PORTS)
    variables = {
        "discovery.type": "single-node",
        "DISABLE_SECURITY_PLUGIN": "true",
        "DISABLE_INSTALL_DEMO_CONFIG": "true",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "OPENSEARCH_JAVA_OPTS": "-Xms512m -Xmx768m",
    }
    with _container(os.environ.get("SCHEDULERLOG_TEST_OPENSEARCH_IMAGE") or OPENSEARCH_IMAGE, variables, 9200, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _container(image: str, variables: dict[str, str], inner_port: int, port: int) -> Iterator[None]:
    # Here, not above: importing it asks for a Docker engine.
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(image, env=variables)
    container.ports[f"{inner_port}/tcp"] = ("127.0.0.1", port)
    with container:
        yield


def _wait(is_ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} was not ready after {READY_SECONDS:.0f} s")
        time.sleep(0.2)

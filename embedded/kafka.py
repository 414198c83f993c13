"""Kafka brokers in KRaft mode: each is broker and controller, so one is a cluster and three survive the loss of one."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code

from embedded.errors import EmbeddedError, ServerError
from embedded.jvm import Jvm
from embedded.kafka_storage import META, FormatError, copy_formatted, format_with_tool, keep_formatted
from embedded.ports import is_listening
from embedded.process import ParentWatch, ProcessId, last_lines
from embedded.server import JavaServer

PROBE_PREFIX: Final = "embedded-probe-"
# A probe that hangs must end before the deadline of the start (``server.START_SECONDS``), so that it is tried again.
_PROBE_MS: Final = 10_000
_LOG_FORMAT: Final = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where one broker listens on 127.0.0.1: for clients, and for the other controllers."""

    node: int
    client_port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """What a broker is given besides, for example listeners with TLS and SASL. ``probe`` still needs the plain one."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """Of ``server.properties``; they replace ours."""
    format_arguments: tuple[str, ...] = ()
    """Of ``kafka-storage format``, for example ``--add-scram``."""
    system_properties: tuple[str, ...] = ()
    """Of Java, as ``-Dname=value``."""


def properties(node: int, addresses: Sequence[Address], log_dir: Path, options: BrokerOptions = BrokerOptions()) -> str:
    """``server.properties`` of one broker of a cluster; raises EmbeddedError for a folder that Kafka cannot use."""
    if "," in str(log_dir):
        raise EmbeddedError(f"{log_dir}: Kafka reads a comma in log.dirs as a separator; use a folder without one")
    own = addresses[node]
    brokers = len(addresses)
    # With three brokers, ``acks=all`` is refused while two are down.
    in_sync = min(2, brokers)
    voters = ",".join(f"{each.node}@127.0.0.1:{each.controller_port}" for each in addresses)
    return "".join(
        f"{name}={value}\n"
        for name, value in {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{own.client_port},CONTROLLER://127.0.0.1:{own.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{own.client_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": _escaped(str(log_dir)),
            "default.replication.factor": brokers,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": brokers,
            "transaction.state.log.replication.factor": brokers,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": brokers,
            "share.coordinator.state.topic.min.isr": in_sync,
            # A misspelt topic must fail, as it does in production, not appear.
            "auto.create.topics.enable": "false",
            # The defaults, fifty partitions for offsets and 10 MiB of index per segment, are for larger machines.
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.num.partitions": 4,
            "log.index.size.max.bytes": 1024 * 1024,
            "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
            "log.preallocate": "false",
            "num.network.threads": 2,
            "num.io.threads": 4,
            # Consumers join without delay, and a test may use sessions as short as a second.
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # A killed broker is noticed in 3 s instead of 9 s.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            **{name: _escaped(value) for name, value in options.properties.items()},
        }.items()
    )


def _escaped(value: str) -> str:
    """A value as java.util.Properties reads it: Latin-1, with backslash as the escape character."""
    return "".join(
        f"\\u{unit:04x}" if unit == ord("\\") or not 32 <= unit < 127 else chr(unit)
        for unit in memoryview(value.encode("utf-16-le")).cast("H")
    )


class KafkaBroker(JavaServer):
    """One broker of a cluster; the addresses of all its brokers are known before the first one starts."""

    kind = "kafka"

    def __init__(
        self,
        home: Path,
        addresses: Sequence[Address],
        node: int,
        cluster_id: str,
        jvm: Jvm,
        parent_watch: ParentWatch | None = None,
        process: ProcessId | None = None,
        options: BrokerOptions = BrokerOptions(),
    ) -> None:
        super().__init__(f"kafka-{node}", home, addresses[node].client_port, parent_watch, process)
        self.node = node
        self.addresses = tuple(addresses)
        self._cluster_id = cluster_id
        self._jvm = jvm
        self._options = options
        self._properties_file = home / "server.properties"
        self._log_dir = home / "data"

    @property
    def bootstrap_server(self) -> str:
        """``host:port`` of this broker alone."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        text = properties(self.node, self.addresses, self._log_dir, self._options)
        self._properties_file.write_text(text, encoding="utf-8")
        # Formatted once: another format would give the data another cluster.
        if not (self._log_dir / META).exists():
            self._format()

    def command(self) -> list[str]:
        return self._jvm.command(
            *_LOG_FORMAT, *self._options.system_properties, "kafka.Kafka", str(self._properties_file)
        )

    def is_answering(self) -> bool:
        return is_listening(self.port) and is_ready(self.bootstrap_server, self.node, self._cluster_id)

    def _format(self) -> None:
        """Write the cluster id and the metadata version into the empty data folder, as KRaft requires."""
        is_plain = self._options == BrokerOptions()
        if is_plain and copy_formatted(self._log_dir, self.node, self._cluster_id, self._jvm):
            return
        arguments = self._options.format_arguments
        try:
            self.log.write_text(
                format_with_tool(self._properties_file, self._cluster_id, self._jvm, arguments), "utf-8"
            )
        except FormatError as error:
            self.log.write_text(str(error), "utf-8")
            raise ServerError(
                f"{self.name}: {self._log_dir} cannot be formatted", self.log, last_lines(self.log)
            ) from None
        if is_plain:
            keep_formatted(self._log_dir, self._jvm)


async def probe(bootstrap_server: str, node: int, cluster_id: str | None = None) -> None:
    """Create a topic on this very broker, write a record, read it back, delete the topic.

    With ``cluster_id``, another Kafka that has taken the port meanwhile does not count.

    Raises KafkaError or TimeoutError as long as one of these is not possible.
    """
    topic = f"{PROBE_PREFIX}{uuid.uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_server, request_timeout_ms=_PROBE_MS)
    async with asyncio.timeout(_PROBE_MS / 1000), _started(admin):
        if cluster_id and (await admin.describe_cluster())["cluster_id"] != cluster_id:
            raise KafkaError(f"{bootstrap_server} is another cluster than {cluster_id}")
        await _create(admin, topic, node)
        try:
            await _write_and_read(bootstrap_server, topic)
        finally:
            await admin.delete_topics([topic])


async def _create(admin: Any, topic: str, node: int) -> None:
    # On this broker by name: a topic that is placed anywhere would prove only that some broker works.
    placed = NewTopic(topic, num_partitions=-1, replication_factor=-1, replica_assignments={0: [node]})
    answer = await admin.create_topics([placed], timeout_ms=_PROBE_MS)
    for _, code, *_ in answer.topic_errors:
        if code:
            raise for_code(code)(topic)
    # A producer that asks before the broker knows the topic logs a warning, which looks like a fault.
    while any(each["error_code"] for each in await admin.describe_topics([topic])):  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def _write_and_read(bootstrap_server: str, topic: str) -> None:
    record = uuid.uuid4().bytes
    partition = TopicPartition(topic, 0)
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_server, request_timeout_ms=_PROBE_MS) as producer:
        await producer.send_and_wait(topic, record, partition=0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_server,
        request_timeout_ms=_PROBE_MS,
        # Without a group: the coordinator's own topic need not exist for the broker to be ready.
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([partition])
    async with consumer:
        read = await consumer.getone(partition)
    if read.value != record:
        raise KafkaError(f"wrote {record!r}, read {read.value!r}")


@asynccontextmanager
async def _started(admin: Any) -> AsyncIterator[None]:
    # start() stays outside of the try: close() without a connection would hang.
    await admin.start()
    try:
        yield
    finally:
        await admin.close()


def is_ready(bootstrap_server: str, node: int, cluster_id: str | None = None) -> bool:
    """Whether ``probe`` succeeds now. It runs in a thread, because the caller may be inside an event loop."""
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(asyncio.run, probe(bootstrap_server, node, cluster_id)).result()
        except (KafkaError, TimeoutError, OSError):
            return False
    return True

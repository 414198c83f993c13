"""Kafka brokers in KRaft mode: each is broker and controller, so one is a cluster and three survive the loss of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dev.embedded.errors import EmbeddedError, ServerError
from dev.embedded.jvm import Jvm
from dev.embedded.kafka_probe import is_ready
from dev.embedded.kafka_storage import META, FormatError, copy_formatted, format_with_tool, keep_formatted
from dev.embedded.ports import is_listening
from dev.embedded.process import ParentWatch, ProcessId, read_last_lines
from dev.embedded.server import JavaServer

_LOG_FORMAT: Final = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)


@dataclass(frozen=True, slots=True)
class Address:
    """Ports of one broker on 127.0.0.1: for clients, and for the other controllers."""

    node: int
    client_port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """Further options of a broker, for example listeners with TLS and SASL. ``probe`` still needs the plain one."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """Entries of ``server.properties``; they replace ours."""
    format_arguments: tuple[str, ...] = ()
    """Arguments of ``kafka-storage format``, for example ``--add-scram``."""
    system_properties: tuple[str, ...] = ()
    """Java's system properties, as ``-Dname=value``."""


def format_properties(
    node: int, addresses: Sequence[Address], log_dir: Path, options: BrokerOptions = BrokerOptions()
) -> str:
    """Format ``server.properties`` of one broker of a cluster; raises EmbeddedError for a folder that Kafka cannot
    use."""
    if "," in str(log_dir):
        raise EmbeddedError(f"{log_dir}: Kafka reads a comma in log.dirs as a separator; use a folder without one")
    address_of_node = addresses[node]
    brokers = len(addresses)
    # With three brokers, ``acks=all`` is refused while two are down.
    in_sync = min(2, brokers)
    voters = ",".join(f"{address.node}@127.0.0.1:{address.controller_port}" for address in addresses)
    return "".join(
        f"{name}={value}\n"
        for name, value in {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{address_of_node.client_port},CONTROLLER://127.0.0.1:{address_of_node.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{address_of_node.client_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": _escape(str(log_dir)),
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
            "broker.heartbeat.interval.ms": 1000,
            # With the default a controller without work writes a record twice a second.
            "metadata.max.idle.interval.ms": 0,
            **{name: _escape(value) for name, value in options.properties.items()},
        }.items()
    )


def _escape(value: str) -> str:
    """Escape a value as java.util.Properties reads it: Latin-1, with backslash as the escape character."""
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
        text = format_properties(self.node, self.addresses, self._log_dir, self._options)
        self._properties_file.write_text(text, encoding="utf-8")
        # Formatted once: another format would give the data another cluster.
        if not (self._log_dir / META).exists():
            self._format()

    def build_command(self) -> list[str]:
        return self._jvm.build_command(
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
                f"{self.name}: {self._log_dir} cannot be formatted", self.log, read_last_lines(self.log)
            ) from None
        if is_plain:
            keep_formatted(self._log_dir, self._jvm)

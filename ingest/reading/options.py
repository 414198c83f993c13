"""The options of the readers, each declared once. Importing it needs no client and no reader."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import BeforeValidator

from ingest.reading.trusted_containers import DEFAULT_CONTAINERS, parse_container_patterns
from ingest.reading.trusted_reporters import DEFAULT_REPORTERS, parse_reporter_patterns
from runtime.cli.cli import build_option_arguments
from runtime.settings.addresses import HostPort, parse_listen_address
from runtime.settings.kafka_connection import KafkaConnection, KafkaConnectionIfGiven
from runtime.settings.names import DEFAULT_CLUSTER
from runtime.settings.settings import ClusterName, Duration, Flag, LabelNames, ServiceSettings

Logs = Annotated[
    list[Path] | None,
    typer.Argument(help="Files, plain or packed (gzip, zstd, xz, bzip2, tar), oldest first; - is stdin."),
]
FromPod = Annotated[
    str | None,
    typer.Option(
        "--pod",
        help="NAMESPACE/NAME[/CONTAINER]: follow this pod's log through the API server instead; NAME may end with *.",
    ),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(help="Kubeconfig for --pod and the list of nodes; default: the pod's service account.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Continue as the file grows, over rotation and truncation.")]
CheckpointFile = Annotated[
    Path | None, typer.Option(help="File for the position in the log; a restart continues there.")
]


LeaseGroup = Annotated[
    str,
    typer.Option(
        "--lease",
        metavar="GROUP",
        help="Read only while no other process with this consumer group of Kafka does, and wait to take over.",
    ),
]


def _parse_text(read: Callable[[str], tuple[str, ...]]) -> BeforeValidator:
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


class IngestSettings(KafkaConnectionIfGiven, ServiceSettings):
    """Settings of every reader: the cluster, and the Kafka for its events."""

    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """The name of the Kubernetes cluster, where several share Kafka and OpenSearch."""

    @property
    def kafka(self) -> KafkaConnection:
        """The connection to Kafka. Raises ``SettingError`` if the settings name none."""
        return self.require_addresses("explain the log itself: schedulerlog explain LOG")


_CONTAINERS: Final = Flag(("--raw-logs-containers", "--containers"), metavar="NAMESPACE/POD/CONTAINER,…", text=",".join)
ContainerPatterns = Annotated[tuple[str, ...], _parse_text(parse_container_patterns)]


class RawLogsSettings(IngestSettings):
    """Settings of ``raw-logs``: also the containers whose lines are believed."""

    raw_logs_containers: Annotated[ContainerPatterns, _CONTAINERS] = DEFAULT_CONTAINERS
    """The containers whose lines are read, with `*` and `?`; any other could print a scheduler's lines too."""


_REPORTERS: Final = Flag(("--event-reporters",), metavar="NAME,…", text=",".join)
ReporterPatterns = Annotated[tuple[str, ...], _parse_text(parse_reporter_patterns)]


class WatchSettings(IngestSettings):
    """Settings of ``kube-events``: also the published parts of a cluster, and the believed reporters."""

    event_reporters: Annotated[ReporterPatterns, _REPORTERS] = DEFAULT_REPORTERS
    """The controllers whose events are read, with `*` and `?`; who may create events can report under any name."""

    pod_labels: Annotated[LabelNames, Flag(metavar="NAME,…", text=",".join)] = ()
    """Labels of pods that are kept with their attempts."""
    handshake_timeout: Duration = timedelta(seconds=300)
    """A node has a problem where its handshake with HAMi's scheduler is older; 0s: none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of every log: its files, and the position in it."""

    logs: Logs = None
    follow: Follow = False
    checkpoint: CheckpointFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcOptions:
    """Options of a gRPC service: its address, and the clients that it accepts."""

    listen: Annotated[
        HostPort | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve the sniffer's gRPC service there instead of reading its log.",
            **build_option_arguments(parse_listen_address),
        ),
    ] = None
    cert_file: Annotated[
        Path | None, typer.Option(help="Serve it over TLS with this certificate; a new one is used when it is there.")
    ] = None
    key_file: Annotated[Path | None, typer.Option(help="The certificate's private key.")] = None
    client_ca_file: Annotated[
        Path | None, typer.Option(help="Answer only clients with a certificate of this authority.")
    ] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody who reaches it report about pods, beyond loopback too.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(SourceOptions):
    """Options of a log that is read from files or, through the API server, from a pod."""

    pod: FromPod = None
    kubeconfig: Kubeconfig = None
    lease: LeaseGroup = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Options of a watch: the cluster, and the namespace."""

    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig; default: the service account of the pod in which this runs.")
    ] = None
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig; default: its current one.")] = None
    namespace: Annotated[str, typer.Option(help="Watch only pods and events of this namespace.")] = ""
    lease: LeaseGroup = ""

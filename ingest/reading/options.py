"""The options of the readers, each declared once. Importing it needs no client and no reader."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import BeforeValidator

from ingest.reading.trusted_containers import DEFAULT_CONTAINERS, container_patterns
from ingest.reading.trusted_reporters import DEFAULT_REPORTERS, reporter_patterns
from runtime.cli.cli import reads
from runtime.settings.addresses import HostPort, listen_address
from runtime.settings.cluster_name import DEFAULT_CLUSTER
from runtime.settings.kafka_connection import KafkaConnection, KafkaConnectionIfGiven
from runtime.settings.service_settings import ServiceSettings
from runtime.settings.settings import ClusterName, Duration, Flag, LabelNames

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
    Path | None, typer.Option(help="For --pod and the list of nodes; default: the pod's service account.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Continue as the file grows, over rotation and truncation.")]
CheckpointFile = Annotated[
    Path | None, typer.Option(help="Where to store how far the log was read; a restart continues there.")
]


def _of_text(read: Callable[[str], tuple[str, ...]]) -> BeforeValidator:
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


class IngestSettings(KafkaConnectionIfGiven, ServiceSettings):
    """Settings: which cluster is read, and where its events go."""

    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """The name of the Kubernetes cluster, where several share Kafka and OpenSearch."""

    @property
    def kafka(self) -> KafkaConnection:
        """Raises ``SettingError`` where it was not given."""
        return self.required("explain the log itself: schedulerlog explain LOG")


_CONTAINERS: Final = Flag(("--raw-logs-containers", "--containers"), metavar="NAMESPACE/POD/CONTAINER,…", text=",".join)
ContainerPatterns = Annotated[tuple[str, ...], _of_text(container_patterns)]


class RawLogsSettings(IngestSettings):
    """Also: whose lines are believed."""

    raw_logs_containers: Annotated[ContainerPatterns, _CONTAINERS] = DEFAULT_CONTAINERS
    """The containers whose lines are read, with `*` and `?`; any other could print a scheduler's lines too."""


_REPORTERS: Final = Flag(("--event-reporters",), metavar="NAME,…", text=",".join)
ReporterPatterns = Annotated[tuple[str, ...], _of_text(reporter_patterns)]


class WatchSettings(IngestSettings):
    """Also: what of a cluster is published, and whose events are believed."""

    event_reporters: Annotated[ReporterPatterns, _REPORTERS] = DEFAULT_REPORTERS
    """The controllers whose events are read, with `*` and `?`; who may create events can report under any name."""

    pod_labels: Annotated[LabelNames, Flag(metavar="NAME,…", text=",".join)] = ()
    """Labels of pods that are kept with their attempts."""
    handshake_timeout: Duration = timedelta(seconds=300)
    """A node has a problem where its handshake with HAMi's scheduler is older; 0s: none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which log is read, and how far it was read before."""

    logs: Logs = None
    follow: Follow = False
    checkpoint: CheckpointFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcOptions:
    """Where a gRPC service listens, and whom it lets in."""

    listen: Annotated[
        HostPort | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve the sniffer's gRPC service there instead of reading its log.",
            **reads(listen_address),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Which cluster is watched, and what of it."""

    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: the service account of the pod that this runs in.")
    ] = None
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig; default: its current one.")] = None
    namespace: Annotated[str, typer.Option(help="Watch pods and events of this namespace alone.")] = ""

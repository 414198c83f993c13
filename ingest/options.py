"""The options of the readers, each declared once. Importing it needs no client and no reader."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from process import durations
from process.cli import ClusterName, KafkaIfGiven, MetricsAddress, PodLabels, reads
from process.cluster_name import DEFAULT_CLUSTER

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
Explain = Annotated[
    str | None, typer.Option(help="Print the schedulerlog of this pod (name or namespace/name); needs no Kafka.")
]
Detail = Annotated[
    bool, typer.Option("--detail", help="With --explain: all that is known, and what the log leaves open.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Continue as the file grows, over rotation and truncation.")]
CheckpointFile = Annotated[
    Path | None, typer.Option(help="Where to store how far the log was read; a restart continues there.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Which log of which cluster is read, how far it was read before, and where its events go."""

    logs: Logs = None
    follow: Follow = False
    checkpoint: CheckpointFile = None
    kafka: KafkaIfGiven = None
    cluster_name: ClusterName = DEFAULT_CLUSTER
    metrics_address: MetricsAddress = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions(SourceOptions):
    """Also: a pod's log from the API server, and the log explained instead of published."""

    explain: Explain = None
    detail: Detail = False
    pod: FromPod = None
    kubeconfig: Kubeconfig = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Which cluster is watched, what of it, and where its events go."""

    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: the service account of the pod that this runs in.")
    ] = None
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig; default: its current one.")] = None
    namespace: Annotated[str, typer.Option(help="Watch pods and events of this namespace alone.")] = ""
    kafka: KafkaIfGiven = None
    cluster_name: ClusterName = DEFAULT_CLUSTER
    pod_labels: PodLabels = ""
    handshake_timeout: Annotated[
        timedelta,
        typer.Option(
            metavar="DURATION",
            help="A node has a problem where its handshake with HAMi's scheduler is older; 0s: none has.",
            **reads(durations.parse),
        ),
    ] = "300s"  # type: ignore[assignment]  # typer reads the default as it reads an argument
    metrics_address: MetricsAddress = None

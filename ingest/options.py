"""The options that the readers of logs share, each declared once. Importing it needs no client and no reader."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from process.cli import ClusterName, KafkaIfGiven, MetricsAddress
from process.cluster_name import DEFAULT_CLUSTER

Logs = Annotated[
    list[Path] | None,
    typer.Argument(help="Files, plain or packed (gzip, zstd, xz, bzip2, tar), oldest first; - is stdin."),
]
FromPod = Annotated[
    str | None,
    typer.Option("--pod", help="NAMESPACE/NAME[/CONTAINER]: follow this pod's log through the API server instead."),
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

"""``python -m ingest NAME LOG…`` reads what a scheduler prints into Kafka.

Readers and clients take long to import: a command imports ``ingest.commands.logs``, or ``ingest.commands.services``
with the clients, when it is called, ``--help`` neither.
"""

from pathlib import Path
from typing import Annotated

import typer

from ingest.errors import KafkaUnavailableError, MistakeError, ReadingError
from ingest.reading.options import (
    ClusterOptions,
    GrpcOptions,
    IngestSettings,
    LogOptions,
    RawLogsSettings,
    SourceOptions,
    WatchSettings,
)
from runtime.cli.cli import create_application, one_line_for
from runtime.errors import SettingError
from runtime.kubernetes.errors import KubeApiError, KubeConfigError
from runtime.settings.flags import with_settings

GROUP = "schedulerlog-ingest-raw-logs"
POOL_LABEL = "kai.scheduler/node-pool"
# No namespace of Kubernetes has this name, so it can't be confused with one.
UNNAMED_NAMESPACE = "-"
MISTAKES = (ReadingError, SettingError, KubeConfigError, KubeApiError)

app = create_application("Turn the logs of unmodified schedulers into schedulerlog's events.")


@app.callback()
def main() -> None:
    """Turn the logs of unmodified schedulers into schedulerlog's events."""


@app.command("hami-log")
@with_settings(IngestSettings, LogOptions)
def hami_log(
    settings: IngestSettings,
    options: LogOptions,
    scheduler: Annotated[
        str, typer.Option(help="Name of the scheduler, as in the pods' spec.schedulerName.")
    ] = "hami-scheduler",
    nodes: Annotated[
        Path | None, typer.Option(help="Output of `kubectl get nodes -o json`: the node of each device.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Time zone of the log; klog lines have none.")] = "UTC",
) -> None:
    """Read the log of HAMi's scheduler, v2.5 to v2.10, at -v=0 to 5."""
    from ingest.commands import logs as commands

    with one_line_for(*MISTAKES), one_line_for(KafkaUnavailableError, status=1):
        commands.read_hami_log(settings, options, scheduler, nodes, timezone)


@app.command("kai-log")
@with_settings(IngestSettings, LogOptions)
def kai_log(
    settings: IngestSettings,
    options: LogOptions,
    nodes: Annotated[
        Path | None, typer.Option(help="Output of `kubectl get nodes -o json`: the memory and the pool of each node.")
    ] = None,
    node_pool: Annotated[
        str, typer.Option(help="Pool that the scheduler serves; default: the pool that its log names.")
    ] = "",
    node_pool_label: Annotated[str, typer.Option(help="Label of nodes that names their pool.")] = POOL_LABEL,
) -> None:
    """Read the log of KAI-Scheduler: v0.13 console, v0.17 JSON, and the tags of the GPU debugging patch."""
    from ingest.commands import logs as commands

    with one_line_for(*MISTAKES), one_line_for(KafkaUnavailableError, status=1):
        commands.read_kai_log(settings, options, nodes, node_pool, node_pool_label)


@app.command("sniffer")
@with_settings(IngestSettings, SourceOptions, GrpcOptions)
def sniffer(
    settings: IngestSettings,
    source: SourceOptions,
    served: GrpcOptions,
    namespace: Annotated[
        str, typer.Option(help="Namespace of the pods; the sniffer's log has none.")
    ] = UNNAMED_NAMESPACE,
) -> None:
    """Read scheduler-sniffer's JSON lines, or serve its gRPC calls: pods and nodes as they change."""
    with one_line_for(*MISTAKES), one_line_for(KafkaUnavailableError, status=1):
        # Both would interleave two sources in one reader, neither would read nothing.
        if bool(source.logs) == bool(served.listen):
            raise MistakeError("give the sniffer's log, or --listen HOST:PORT")
        if served.listen:
            from ingest.commands import services

            services.serve_sniffer(settings, served.listen, served, namespace)
        else:
            from ingest.commands import logs as commands

            commands.read_sniffer_log(settings, source, namespace)


@app.command("raw-logs")
@with_settings(RawLogsSettings)
def raw_logs(
    settings: RawLogsSettings,
    group: Annotated[str, typer.Option(help="Consumer group; several processes share its partitions.")] = GROUP,
) -> None:
    """Read HAMi's and KAI's logs that shippers write to the topic schedulerlog.raw-logs."""
    from ingest.commands import services

    with one_line_for(*MISTAKES), one_line_for(KafkaUnavailableError, status=1):
        services.read_raw_logs(settings, group)


@app.command("kube-events")
@with_settings(WatchSettings, ClusterOptions)
def kube_events(settings: WatchSettings, options: ClusterOptions) -> None:
    """Watch the pods, nodes and events of a Kubernetes cluster, with any scheduler."""
    from ingest.commands import services

    with one_line_for(*MISTAKES), one_line_for(KafkaUnavailableError, status=1):
        services.watch_cluster(settings, options)


if __name__ == "__main__":
    app()

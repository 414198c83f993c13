"""``python -m ingest NAME LOG…`` reads what a scheduler prints, into Kafka or, with ``--explain POD``, for a person."""

import asyncio
import signal
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from ingest.checkpoint import CheckpointError
from ingest.hami.devices import RegisteredDevices, devices_of_nodes
from ingest.hami.reader import HamiLog
from ingest.kafka import KafkaSink, KafkaUnavailableError
from ingest.kai import KaiLog
from ingest.kai.devices import labels_of_nodes
from ingest.kube import KubeEvents
from ingest.kube.watch import watch
from ingest.metrics import Metrics
from ingest.report import report
from ingest.run_command import KAFKA_VARIABLE, Asked, MistakeError, nodes_of_cluster, read, served_metrics, servers_of
from ingest.sniffer.reader import UNNAMED_NAMESPACE, SnifferLog
from ingest.sniffer.service import server
from ingest.sources.blocks import UnreadableFileError
from kube.credentials import LoadConfiguration, from_kubeconfig, in_cluster
from kube.errors import KubeApiError, KubeConfigError
from process.cli import application, one_line_for

app = application("Turn the logs of unmodified schedulers into schedulerlog's events.")

SomeLogs = Annotated[
    list[Path] | None,
    typer.Argument(help="Files, plain or packed (gzip, zstd, xz, bzip2, tar), oldest first; - is stdin."),
]
FromPod = Annotated[
    str | None,
    typer.Option("--pod", help="NAMESPACE/NAME[/CONTAINER]: follow this pod's log through the API server instead."),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="For --pod and the list of nodes; default: the service account."),
]
MetricsPort = Annotated[int | None, typer.Option(help="Serve /metrics on 127.0.0.1 at this port.", min=1, max=65535)]
Explain = Annotated[
    str | None, typer.Option(help="Print the schedulerlog of this pod (name or namespace/name); needs no Kafka.")
]
Detail = Annotated[
    bool, typer.Option("--detail", help="With --explain: all that is known, and what the log leaves open.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Go on as the file grows, over rotation and truncation.")]
CheckpointFile = Annotated[
    Path | None, typer.Option(help="Where to keep how far the log was read; a restart goes on there.")
]
GROUP = "schedulerlog-ingest-raw-logs"
Kafka = Annotated[str | None, typer.Option(help=f"HOST:PORT[,HOST:PORT…]; default: ${KAFKA_VARIABLE}.")]
Scheduler = Annotated[str, typer.Option(help="The scheduler's name, as in the pods' spec.schedulerName.")]


MISTAKES = (MistakeError, CheckpointError, UnreadableFileError, KafkaUnavailableError, KubeConfigError, KubeApiError)


@app.callback()
def main() -> None:
    """A callback makes the reader's name part of the command, however few readers there are."""


@app.command("hami-log")
def hami_log(
    logs: SomeLogs = None,
    explain: Explain = None,
    detail: Detail = False,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    scheduler: Scheduler = "hami-scheduler",
    nodes: Annotated[
        Path | None, typer.Option(help="`kubectl get nodes -o json`: says which card sits on which node.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Of the log's times, which name none.")] = "UTC",
    pod: FromPod = None,
    kubeconfig: Kubeconfig = None,
    metrics_port: MetricsPort = None,
) -> None:
    """HAMi's scheduler log, v2.5 to v2.10, at -v=0 to 5."""
    asked = Asked("hami-log", logs or [], explain, detail, follow, checkpoint, kafka, pod, kubeconfig, metrics_port)
    with one_line_for(*MISTAKES):
        read(asked, HamiLog(scheduler, _cards(nodes, asked), _zone(timezone)))


@app.command("kai-log")
def kai_log(
    logs: SomeLogs = None,
    explain: Explain = None,
    detail: Detail = False,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    nodes: Annotated[
        Path | None, typer.Option(help="`kubectl get nodes -o json`: says how much memory the cards of a node have.")
    ] = None,
    pod: FromPod = None,
    kubeconfig: Kubeconfig = None,
    metrics_port: MetricsPort = None,
) -> None:
    """KAI-Scheduler's log: v0.13 console, v0.17 JSON, and the tags of the GPU debugging patch."""
    asked = Asked("kai-log", logs or [], explain, detail, follow, checkpoint, kafka, pod, kubeconfig, metrics_port)
    with one_line_for(*MISTAKES):
        read(asked, KaiLog(_labels(nodes)))


@app.command("sniffer")
def sniffer(
    logs: Annotated[list[Path] | None, typer.Argument(help="The sniffer's log; - is stdin.")] = None,
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT: serve the sniffer's gRPC service instead of reading its log.")
    ] = None,
    follow: Follow = False,
    checkpoint: CheckpointFile = None,
    kafka: Kafka = None,
    namespace: Annotated[
        str, typer.Option(help="Of the pods; the sniffer's log does not name it.")
    ] = UNNAMED_NAMESPACE,
    metrics_port: MetricsPort = None,
) -> None:
    """scheduler-sniffer's JSON lines, or what its scheduler sends over gRPC: pods and nodes as they change."""
    with one_line_for(*MISTAKES):
        if listen and not logs:
            asyncio.run(_serve_sniffer(listen, SnifferLog(namespace), servers_of(kafka), metrics_port))
        elif logs and not listen:
            asked = Asked("sniffer", logs, None, False, follow, checkpoint, kafka, metrics_port=metrics_port)
            read(asked, SnifferLog(namespace))
        else:
            raise MistakeError("give the sniffer's log, or --listen HOST:PORT")


async def _serve_sniffer(address: str, reader: SnifferLog, servers: str, metrics_port: int | None) -> None:
    stop = _stop_by_signal()
    metrics = served_metrics("sniffer", metrics_port)
    async with KafkaSink(servers) as sink:

        async def take(request: dict[str, str]) -> None:
            await sink.send(reader.send(request, datetime.now(UTC)))
            metrics.note(reader.counts)

        try:
            running, port = server(address, take)
        except OSError as error:
            raise MistakeError(str(error)) from None
        await running.start()
        typer.echo(f"listening on {address.rpartition(':')[0]}:{port}", err=True)
        await stop.wait()
        await running.stop(grace=5)
    typer.echo(report(reader.counts), err=True)


@app.command("raw-logs")
def raw_logs(
    kafka: Kafka = None,
    group: Annotated[str, typer.Option(help="The consumer group; several processes share its partitions.")] = GROUP,
    metrics_port: MetricsPort = None,
) -> None:
    """HAMi's and KAI's logs as shippers write them to the topic schedulerlog.raw-logs."""
    with one_line_for(*MISTAKES):
        asyncio.run(_read_raw_logs(servers_of(kafka), group, metrics_port))


async def _read_raw_logs(servers: str, group: str, metrics_port: int | None) -> None:
    # Faust is slow to import, and the other sources do without it.
    from ingest.raw_logs.app import serve

    read = await serve(servers, _stop_by_signal(), group, served_metrics("raw-logs", metrics_port))
    for (name, outcome), count in sorted(read.lines().items()):
        typer.echo(f"{name or 'no scheduler'}: {count} lines {outcome}", err=True)


def _stop_by_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@app.command("kube-events")
def kube_events(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: the service account of the pod that this runs in.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Of the kubeconfig; default: its current one.")] = None,
    namespace: Annotated[str, typer.Option(help="Watch pods and events of this namespace alone.")] = "",
    kafka: Kafka = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Pods, nodes and events of a Kubernetes cluster, whoever schedules there."""
    with one_line_for(*MISTAKES):
        load = from_kubeconfig(kubeconfig, context) if kubeconfig else in_cluster
        asyncio.run(_watch(load, namespace, servers_of(kafka), served_metrics("kube-events", metrics_port)))


async def _watch(load: LoadConfiguration, namespace: str, servers: str, metrics: Metrics) -> None:
    stop = _stop_by_signal()
    reader = KubeEvents()
    async with KafkaSink(servers) as sink:
        await watch(load, reader, sink, metrics, namespace=namespace, until=stop.is_set)
    typer.echo(report(reader.counts), err=True)


def _labels(nodes: Path | None) -> dict[str, int]:
    try:
        return labels_of_nodes(nodes.read_bytes()) if nodes else {}
    except OSError as error:
        raise MistakeError(f"{nodes}: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{nodes}: {error}") from None


def _cards(nodes: Path | None, asked: Asked) -> RegisteredDevices:
    """From the node list, else from the cluster where there is a connection to it."""
    if nodes is None:
        return asyncio.run(_cards_of_cluster(asked.kubeconfig)) if asked.kubeconfig or asked.pod else {}
    try:
        return devices_of_nodes(nodes.read_bytes())
    except OSError as error:
        raise MistakeError(f"{nodes}: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{nodes}: {error}") from None


async def _cards_of_cluster(kubeconfig: Path | None) -> RegisteredDevices:
    cards: RegisteredDevices = {}
    try:
        async for page in nodes_of_cluster(kubeconfig):
            cards |= devices_of_nodes(page)
    except KubeApiError as error:
        typer.echo(f"nodes can't be listed, so cards are told without their nodes: {error}", err=True)
    return cards


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MistakeError(f"--timezone {name}: no such zone; write it as in Asia/Shanghai") from None


if __name__ == "__main__":
    app()

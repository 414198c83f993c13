"""The commands of ``python -m ingest`` as functions. The command line imports this module when one is called."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from ingest.errors import MistakeError
from ingest.hami.devices import RegisteredDevices, devices_of_nodes
from ingest.hami.reader import HamiLog
from ingest.kafka import KafkaSink
from ingest.kai import KaiLog
from ingest.kai.devices import labels_of_nodes
from ingest.kai.node_pools import NodePools, pools_of_nodes
from ingest.kube import KubeEvents
from ingest.kube.node_checks import HamiNodeChecks
from ingest.kube.watch import watch
from ingest.metrics import Metrics
from ingest.options import ClusterOptions, LogOptions, SourceOptions
from ingest.report import report
from ingest.run_command import nodes_of_cluster, read, servers_of
from ingest.sniffer.reader import SnifferLog
from kube.credentials import LoadConfiguration, from_kubeconfig, in_cluster
from kube.errors import KubeApiError
from process import logs
from process.addresses import HostPort
from process.health import always, serving
from process.pod_labels import label_names
from process.signals import stop_event

T = TypeVar("T")


def read_hami_log(asked: LogOptions, scheduler: str, nodes: Path | None, timezone: str) -> None:
    read("hami-log", asked, HamiLog(scheduler, _devices(nodes, asked), _zone(timezone), cluster=asked.cluster_name))


def read_kai_log(asked: LogOptions, nodes: Path | None, node_pool: str, node_pool_label: str) -> None:
    labels: dict[str, int] = {}
    pools: dict[str, str] = {}
    if nodes:
        labels = _of_node_list(nodes, labels_of_nodes)
        pools = _of_node_list(nodes, lambda text: pools_of_nodes(text, node_pool_label))
    elif node_pool:
        raise MistakeError("--node-pool: give --nodes too, which names the pool of each node")
    served = NodePools(pools, node_pool_label, node_pool)
    read("kai-log", asked, KaiLog(labels, cluster=asked.cluster_name, pools=served))


def read_sniffer_log(source: SourceOptions, namespace: str) -> None:
    read("sniffer", LogOptions(**asdict(source)), SnifferLog(namespace, cluster=source.cluster_name))


def serve_sniffer(address: HostPort, source: SourceOptions, namespace: str) -> None:
    logs.configure()
    asyncio.run(_serve_sniffer(address, source, SnifferLog(namespace, cluster=source.cluster_name)))


async def _serve_sniffer(address: HostPort, source: SourceOptions, reader: SnifferLog) -> None:
    # gRPC is slow to import, and the other sources do without it.
    from ingest.sniffer.service import server

    stop = stop_event()
    metrics, sink = Metrics("sniffer"), KafkaSink(servers_of(source.kafka))

    async def take(request: dict[str, str]) -> None:
        # The gRPC call is answered after Kafka has the events.
        await sink.send(reader.send(request, datetime.now(UTC)))
        metrics.note(reader.counts)

    with serving(source.metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            try:
                running, port = server(str(address), take)
            except OSError as error:
                raise MistakeError(f"--listen: {error}") from None
            await running.start()
            typer.echo(f"listening on {HostPort(address.host, port)}", err=True)
            await stop.wait()
            await running.stop(grace=5)
    typer.echo(report(reader.counts), err=True)


def read_raw_logs(kafka: str | None, cluster: str, group: str, metrics_address: HostPort | None) -> None:
    logs.configure()
    asyncio.run(_read_raw_logs(servers_of(kafka), cluster, group, metrics_address))


async def _read_raw_logs(servers: str, cluster: str, group: str, metrics_address: HostPort | None) -> None:
    # Faust is slow to import, and the other sources do without it.
    from ingest.raw_logs.app import serve

    metrics, sink = Metrics("raw-logs"), KafkaSink(servers)
    with serving(metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            raw_logs = await serve(sink, servers, stop_event(), group, metrics, cluster=cluster)
    for (name, outcome), count in sorted(raw_logs.lines().items()):
        typer.echo(f"{name or 'no scheduler'}: {count} lines {outcome}", err=True)


def watch_cluster(asked: ClusterOptions) -> None:
    load = from_kubeconfig(asked.kubeconfig, asked.context) if asked.kubeconfig else in_cluster
    logs.configure()
    asyncio.run(_watch(load, asked, servers_of(asked.kafka)))


async def _watch(load: LoadConfiguration, asked: ClusterOptions, servers: str) -> None:
    stop, reader = stop_event(), KubeEvents(asked.cluster_name, label_names(asked.pod_labels))
    checks = HamiNodeChecks(asked.cluster_name, asked.handshake_timeout)
    metrics, sink = Metrics("kube-events"), KafkaSink(servers)
    with serving(asked.metrics_address, metrics.registry, always, sink.waiting_for):
        async with sink:
            await watch(load, reader, sink, metrics, checks=checks, namespace=asked.namespace, until=stop.is_set)
    typer.echo(report(reader.counts), err=True)


def _of_node_list(nodes: Path, parse: Callable[[bytes], T]) -> T:
    """What ``parse`` makes of the file. Raises ``MistakeError``."""
    try:
        return parse(nodes.read_bytes())
    except OSError as error:
        raise MistakeError(f"{nodes}: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{nodes}: {error}") from None


def _devices(nodes: Path | None, asked: LogOptions) -> RegisteredDevices:
    """From the node list, else from the cluster if there is a connection to it."""
    if nodes:
        return _of_node_list(nodes, devices_of_nodes)
    return asyncio.run(_devices_of_cluster(asked.kubeconfig)) if asked.kubeconfig or asked.pod else {}


async def _devices_of_cluster(kubeconfig: Path | None) -> RegisteredDevices:
    devices: RegisteredDevices = {}
    try:
        async for page in nodes_of_cluster(kubeconfig):
            devices |= devices_of_nodes(page)
    # Device lines name no node, but everything else in the log can be read without the list.
    except KubeApiError as error:
        typer.echo(f"nodes can't be listed, so devices are reported without their nodes: {error}", err=True)
    return devices


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MistakeError(f"--timezone {name}: no such zone; write it as in Asia/Shanghai") from None

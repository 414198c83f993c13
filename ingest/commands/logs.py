"""The commands that read logs, as functions: each imports its reader, and a client only where it connects."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ingest.errors import MistakeError
from ingest.reading.options import IngestSettings, LogOptions, SourceOptions
from ingest.sources.log_facts import parse_zone, read_node_list
from runtime.kubernetes.errors import KubeApiError

if TYPE_CHECKING:
    from ingest.readers.hami.devices import RegisteredDevices
    from ingest.readers.kai import KaiLog
    from ingest.reading.protocol import LogReader


def read_hami_log(
    settings: IngestSettings, options: LogOptions, scheduler: str, nodes: Path | None, timezone: str
) -> None:
    from ingest.readers.hami.reader import HamiLog

    zone = parse_zone(timezone)
    devices = _read_devices(nodes, options)
    _read("hami-log", settings, options, HamiLog(scheduler, devices, zone, cluster=settings.cluster_name))


def read_kai_log(
    settings: IngestSettings, options: LogOptions, nodes: Path | None, node_pool: str, node_pool_label: str
) -> None:
    _read("kai-log", settings, options, create_kai_reader(settings.cluster_name, nodes, node_pool, node_pool_label))


def create_kai_reader(cluster: str, nodes: Path | None, node_pool: str, node_pool_label: str) -> "KaiLog":
    """Create the reader of KAI's log with the memory and the pool of each node. Raises ``MistakeError``."""
    from ingest.readers.kai import KaiLog
    from ingest.readers.kai.node_labels import NodePools, parse_memory_labels, parse_pool_labels

    memory: dict[str, int] = {}
    pools: dict[str, str] = {}
    if nodes:
        memory = read_node_list(nodes, parse_memory_labels)
        pools = read_node_list(nodes, lambda text: parse_pool_labels(text, node_pool_label))
    elif node_pool:
        raise MistakeError("--node-pool: give --nodes too, which names the pool of each node")
    return KaiLog(memory, cluster=cluster, pools=NodePools(pools, node_pool_label, node_pool))


def read_sniffer_log(settings: IngestSettings, source: SourceOptions, namespace: str) -> None:
    from ingest.readers.sniffer.reader import SnifferLog

    options = LogOptions(**asdict(source))
    _read("sniffer", settings, options, SnifferLog(namespace, cluster=settings.cluster_name))


def _read(name: str, settings: IngestSettings, options: LogOptions, reader: "LogReader") -> None:
    # With Kafka's client, which is slow to import: a mistake in the options is reported before.
    from ingest.commands.run_command import read

    read(name, settings, options, reader)


def _read_devices(nodes: Path | None, options: LogOptions) -> "RegisteredDevices":
    """Read the registered devices from the node list, else from the cluster if there is a connection to it."""
    if nodes:
        from ingest.readers.hami.devices import parse_node_list

        return read_node_list(nodes, parse_node_list)
    return asyncio.run(list_registered_devices(options.kubeconfig)) if options.kubeconfig or options.pod else {}


async def list_registered_devices(kubeconfig: Path | None) -> "RegisteredDevices":
    """List the devices of the cluster's nodes; none, with a line on stderr, where nodes may not be listed."""
    from ingest.commands.from_cluster import list_nodes
    from ingest.readers.hami.devices import parse_node_list

    devices: RegisteredDevices = {}
    try:
        async for page in list_nodes(kubeconfig):
            devices |= parse_node_list(page)
    # Device lines name no node, but everything else in the log can be read without the list.
    except KubeApiError as error:
        typer.echo(f"nodes can't be listed, so devices are reported without their nodes: {error}", err=True)
    return devices

"""The commands that read logs, as functions: each imports its reader, and a client only where it connects."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from ingest.commands.run_command import read
from ingest.errors import MistakeError
from ingest.reading.options import IngestSettings, LogOptions, SourceOptions
from runtime.kubernetes.errors import KubeApiError

if TYPE_CHECKING:
    from ingest.readers.hami.devices import RegisteredDevices

T = TypeVar("T")


def read_hami_log(
    settings: IngestSettings, asked: LogOptions, scheduler: str, nodes: Path | None, timezone: str
) -> None:
    from ingest.readers.hami.reader import HamiLog

    zone = _zone(timezone)
    reader = HamiLog(scheduler, _devices(nodes, asked), zone, cluster=settings.cluster_name)
    read("hami-log", settings, asked, reader)


def read_kai_log(
    settings: IngestSettings, asked: LogOptions, nodes: Path | None, node_pool: str, node_pool_label: str
) -> None:
    from ingest.readers.kai import KaiLog
    from ingest.readers.kai.devices import labels_of_nodes
    from ingest.readers.kai.node_pools import NodePools, pools_of_nodes

    labels: dict[str, int] = {}
    pools: dict[str, str] = {}
    if nodes:
        labels = _of_node_list(nodes, labels_of_nodes)
        pools = _of_node_list(nodes, lambda text: pools_of_nodes(text, node_pool_label))
    elif node_pool:
        raise MistakeError("--node-pool: give --nodes too, which names the pool of each node")
    served = NodePools(pools, node_pool_label, node_pool)
    read("kai-log", settings, asked, KaiLog(labels, cluster=settings.cluster_name, pools=served))


def read_sniffer_log(settings: IngestSettings, source: SourceOptions, namespace: str) -> None:
    from ingest.readers.sniffer.reader import SnifferLog

    read("sniffer", settings, LogOptions(**asdict(source)), SnifferLog(namespace, cluster=settings.cluster_name))


def _of_node_list(nodes: Path, parse: Callable[[bytes], T]) -> T:
    """What ``parse`` makes of the file. Raises ``MistakeError``."""
    try:
        return parse(nodes.read_bytes())
    except OSError as error:
        raise MistakeError(f"{nodes}: {error.strerror}") from None
    except ValueError as error:
        raise MistakeError(f"{nodes}: {error}") from None


def _devices(nodes: Path | None, asked: LogOptions) -> "RegisteredDevices":
    """From the node list, else from the cluster if there is a connection to it."""
    if nodes:
        from ingest.readers.hami.devices import devices_of_nodes

        return _of_node_list(nodes, devices_of_nodes)
    return asyncio.run(_devices_of_cluster(asked.kubeconfig)) if asked.kubeconfig or asked.pod else {}


async def _devices_of_cluster(kubeconfig: Path | None) -> "RegisteredDevices":
    from ingest.commands.from_cluster import nodes_of_cluster
    from ingest.readers.hami.devices import devices_of_nodes

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

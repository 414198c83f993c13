"""The readers as parts: of the cluster's objects and events, and of the logs of HAMi and KAI in pods."""

import asyncio
from typing import TYPE_CHECKING

from cli.single_process.settings import SingleProcessSettings
from runtime.signals import run_until_cancelled
from runtime.telemetry.health import ServeHealth

if TYPE_CHECKING:
    from ingest.reading.protocol import LogReader

STOP_SECONDS = 5.0
"""Time in which a reader publishes what is still open."""
HAMI_SCHEDULER = "hami-scheduler"
KAI_POOL_LABEL = "kai.scheduler/node-pool"


async def read_cluster(settings: SingleProcessSettings, serve_health: ServeHealth) -> None:
    """Watch pods, nodes and events of the cluster until cancelled."""
    from ingest.commands.services import work_on_cluster
    from runtime.kubernetes.credentials import choose_loader

    load, stop = choose_loader(settings.kubeconfig, settings.context), asyncio.Event()
    work = work_on_cluster(load, settings, "", stop.is_set, serve_health)
    await run_until_cancelled(work, stop.set, STOP_SECONDS)


async def follow_hami_log(settings: SingleProcessSettings, pod: str, serve_health: ServeHealth) -> None:
    """Follow the log of HAMi's scheduler in a pod until cancelled."""
    from ingest.commands.logs import list_registered_devices
    from ingest.readers.hami.reader import HamiLog
    from ingest.sources.log_facts import parse_zone

    devices = await list_registered_devices(settings.kubeconfig)
    reader = HamiLog(HAMI_SCHEDULER, devices, parse_zone("UTC"), cluster=settings.cluster_name)
    await _follow("hami-log", settings, pod, reader, serve_health)


async def follow_kai_log(settings: SingleProcessSettings, pod: str, serve_health: ServeHealth) -> None:
    """Follow the log of KAI's scheduler in a pod until cancelled."""
    from ingest.commands.logs import create_kai_reader

    reader = create_kai_reader(settings.cluster_name, None, "", KAI_POOL_LABEL)
    await _follow("kai-log", settings, pod, reader, serve_health)


async def _follow(
    name: str, settings: SingleProcessSettings, pod: str, reader: "LogReader", serve_health: ServeHealth
) -> None:
    from ingest.commands.run_command import publish, read_lines
    from ingest.reading.checkpoint import CheckpointState
    from ingest.reading.options import LogOptions

    # Without a checkpoint: the kubelet keeps the last files of a log, and what is read again has the same ids.
    lines = read_lines(LogOptions(pod=pod, kubeconfig=settings.kubeconfig), CheckpointState())
    await publish(name, settings, reader, None, lines, serve_health)

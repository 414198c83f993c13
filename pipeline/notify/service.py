"""The process around the notifier: clients, memory, metrics and readiness."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from pipeline.metrics import NotifyMetrics
from pipeline.notify.process import ApiAccess, Notifier, NotifyPolicy
from pipeline.notify.sent_memory import ConfigMapStore, FileStore, SentMemory
from pipeline.settings import NotifySettings
from runtime.errors import SettingError
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration, read_pod_namespace
from runtime.kubernetes.election import Election
from runtime.kubernetes.leadership import generate_identity
from runtime.kubernetes.lease import LeaseTimings
from runtime.kubernetes.resources import Key
from runtime.settings.addresses import HostPort
from runtime.settings.flags import get_flag
from runtime.signals import run_until_first_ends, run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving

_NAME: Final = "schedulerlog-notify"
"""Name of the ConfigMap, and of the Lease."""
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class NotifyService:
    api: ApiAccess
    policy: NotifyPolicy
    load: LoadConfiguration
    """Loader of the configuration for the API server."""
    metrics_address: HostPort | None
    memory_file: Path | None
    lease: LeaseTimings | None = None
    """Times of the lease by which one process of several sends; None for the only process of a cluster."""


async def run(service: NotifyService) -> None:
    """Work until SIGTERM or SIGINT. Raises ``KubeConfigError``, ``SettingError``, ``KubeApiError`` at the start."""
    await run_until_stopped(work(service))


async def work(service: NotifyService, serve_health: ServeHealth = serving) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile. Raises as ``run``."""
    metrics = NotifyMetrics()
    namespace = os.environ.get("POD_NAMESPACE") or read_pod_namespace()
    if not (namespace or service.memory_file):
        option = get_flag(NotifySettings, "notify_memory_file")
        raise SettingError(f"{option}: needed outside of a cluster (or $POD_NAMESPACE, of the ConfigMap)")
    client = Client(await ApiCredentials.open(service.load))
    store = FileStore(service.memory_file) if service.memory_file else ConfigMapStore(client, namespace, _NAME)
    try:
        # A proxy of the environment is none for addresses within the cluster.
        async with aiohttp.ClientSession(trust_env=False) as session:
            notifier = Notifier(service.api, client, SentMemory(store), service.policy, metrics, session)
            election = _create_election(client, namespace, service)

            def check_ready() -> str:
                if election and election.problem:
                    return f"waiting for the lease: {election.problem}"
                return "waiting for schedulerlog's API" if notifier.api_wait.is_waiting else ""

            with serve_health(service.metrics_address, metrics.registry, report_no_problem, check_ready):
                await (_take_turns(notifier, election) if election else notifier.run())
    finally:
        await client.close()


def _create_election(client: Client, namespace: str, service: NotifyService) -> Election | None:
    """Create the election among the processes that share the ConfigMap; a file is the memory of one process."""
    if service.lease is None or service.memory_file:
        return None
    return Election(client, Key(namespace, _NAME), generate_identity(), service.lease)


async def _take_turns(notifier: Notifier, election: Election) -> None:
    """Send while this process holds the lease, from what the process before it has remembered."""
    notifier.is_leading = lambda: election.is_leading

    async def send() -> None:
        while True:
            await election.term_began.wait()
            election.term_began.clear()
            await run_until_first_ends(notifier.run(), wait_until_lost())

    async def wait_until_lost() -> None:
        while election.is_leading:  # noqa: ASYNC110 - a lease that is not renewed ends by time, without an event
            await asyncio.sleep(_POLL_SECONDS)

    try:
        await run_until_first_ends(election.run(), send())
    finally:
        # After a message that is being sent has ended: the next process sends what this one has not.
        await election.resign()

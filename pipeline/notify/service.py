"""The process around the notifier: clients, memory, metrics and readiness."""

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
from runtime.settings.addresses import HostPort
from runtime.settings.flags import get_flag
from runtime.signals import run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving

_CONFIG_MAP: Final = "schedulerlog-notify"


@dataclass(frozen=True, slots=True)
class NotifyService:
    api: ApiAccess
    policy: NotifyPolicy
    load: LoadConfiguration
    """Loader of the configuration for the API server."""
    metrics_address: HostPort | None
    memory_file: Path | None


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
    store = FileStore(service.memory_file) if service.memory_file else ConfigMapStore(client, namespace, _CONFIG_MAP)
    try:
        # A proxy of the environment is none for addresses within the cluster.
        async with aiohttp.ClientSession(trust_env=False) as session:
            notifier = Notifier(service.api, client, SentMemory(store), service.policy, metrics, session)

            def check_ready() -> str:
                return "waiting for schedulerlog's API" if notifier.api_wait.is_waiting else ""

            with serve_health(service.metrics_address, metrics.registry, report_no_problem, check_ready):
                await notifier.run()
    finally:
        await client.close()

"""The process around the notifier: clients, memory, metrics and readiness."""

import os
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from pipeline.metrics import NotifyMetrics
from pipeline.notify.process import ApiAccess, Notifier, NotifyPolicy
from pipeline.notify.sent_memory import ConfigMapStore, FileStore, SentMemory
from runtime.errors import SettingError
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration, read_pod_namespace
from runtime.settings.addresses import HostPort
from runtime.signals import run_until_stopped
from runtime.telemetry.health import report_no_problem, serving


@dataclass(frozen=True, slots=True)
class NotifyService:
    api: ApiAccess
    policy: NotifyPolicy
    load: LoadConfiguration
    """Loader of the configuration for the API server."""
    metrics_address: HostPort | None
    memory_file: Path | None
    config_map: str


async def run(service: NotifyService) -> None:
    """Work until SIGTERM or SIGINT. Raises ``KubeConfigError``, ``SettingError``, ``KubeApiError`` at the start."""
    metrics = NotifyMetrics()
    namespace = os.environ.get("POD_NAMESPACE") or read_pod_namespace()
    if not (namespace or service.memory_file):
        raise SettingError("--memory-file: needed outside of a cluster (or $POD_NAMESPACE, of the ConfigMap)")
    client = Client(await ApiCredentials.open(service.load))
    store = (
        FileStore(service.memory_file) if service.memory_file else ConfigMapStore(client, namespace, service.config_map)
    )
    try:
        # A proxy of the environment is none for addresses within the cluster.
        async with aiohttp.ClientSession(trust_env=False) as session:
            notifier = Notifier(service.api, client, SentMemory(store), service.policy, metrics, session)

            def check_ready() -> str:
                return "waiting for schedulerlog's API" if notifier.api_wait.is_waiting else ""

            with serving(service.metrics_address, metrics.registry, report_no_problem, check_ready):
                await run_until_stopped(notifier.run())
    finally:
        await client.close()

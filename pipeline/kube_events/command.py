"""The command line of ``python -m pipeline events``."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from pipeline.settings import EventsSettings, derive_events_group
from runtime.cli.cli import create_duration_option, fail, one_line_for
from runtime.errors import NotProvisionedError, SettingError
from runtime.kubernetes.errors import KubeConfigError
from runtime.settings.flags import with_settings
from runtime.telemetry import logs

_LONGEST_LINGER: Final = timedelta(minutes=1)


@with_settings(EventsSettings)
def events(
    settings: EventsSettings,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The kubeconfig for the API server; without it, the pod's service account.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="A context of the kubeconfig; without it, the current one.")
    ] = None,
    scheduler: Annotated[
        list[str] | None, typer.Option(help="Only messages of this scheduler; repeatable. Without it, of all.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The Kafka consumer group. Without it, schedulerlog-events-CLUSTER.")
    ] = None,
    kube_api_qps: Annotated[float, typer.Option(help="Requests a second to the API server; 0: no limit.", min=0)] = 20,
    kube_api_burst: Annotated[int, typer.Option(help="Requests that may be sent at once after a pause.", min=1)] = 50,
    linger: Annotated[
        timedelta, create_duration_option("--linger", "Retries that arrive within this time share a request.")
    ] = "1s",  # type: ignore[assignment]
    max_age: Annotated[
        timedelta,
        create_duration_option("--max-age", "Older messages are passed over; see kube-apiserver's --event-ttl."),
    ] = "1h",  # type: ignore[assignment]
) -> None:
    """Write messages into Kubernetes as events of their pods, until SIGTERM. Each cluster needs a process of its own.

    Retries of a pod for the same reason share one event, whose series counts them. The role needs create, get, list
    and patch of events in events.k8s.io, and get of pods.
    """
    # The clients take their time to import: only this command needs them.
    from pipeline.kube_events.event_writer import EventPolicy
    from pipeline.kube_events.process import Settings, run
    from runtime.kubernetes.credentials import choose_loader

    if linger > _LONGEST_LINGER:
        fail("--linger: is too long, write at most 60s", 2)
    cluster_name = settings.cluster_name
    policy = EventPolicy(cluster_name, frozenset(scheduler or ()), max_age)
    load = choose_loader(kubeconfig, context)
    logs.configure(settings)
    group = group or derive_events_group(cluster_name)
    rates = kube_api_qps, kube_api_burst, linger.total_seconds()
    chosen = Settings(settings, group, load, *rates, settings.metrics_address, policy)
    with one_line_for(SettingError, KubeConfigError), one_line_for(NotProvisionedError, status=1):
        asyncio.run(run(chosen))

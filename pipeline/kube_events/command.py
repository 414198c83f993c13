"""The command line of ``python -m pipeline events``."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from kube.errors import KubeConfigError
from process import logs
from process.cli import ClusterName, Kafka, MetricsAddress, one_line_for
from process.cluster_name import DEFAULT_CLUSTER
from process.errors import NotProvisionedError, SettingError


def events(
    kafka: Kafka,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How to reach the API server; without it, by the pod's service account.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="A context of the kubeconfig; without it, the current one.")
    ] = None,
    scheduler: Annotated[
        list[str] | None, typer.Option(help="Only messages of this scheduler; repeatable. Without it, of all.")
    ] = None,
    cluster_name: ClusterName = DEFAULT_CLUSTER,
    group: Annotated[
        str | None, typer.Option(help="The Kafka consumer group. Without it, schedulerlog-events-CLUSTER.")
    ] = None,
    kube_api_qps: Annotated[float, typer.Option(help="Requests a second to the API server; 0: no limit.", min=0)] = 20,
    kube_api_burst: Annotated[int, typer.Option(help="Requests that may be sent at once after a pause.", min=1)] = 50,
    linger_seconds: Annotated[
        float, typer.Option(help="Retries that arrive within this time share a request.", min=0, max=60)
    ] = 1.0,
    max_age_minutes: Annotated[
        float, typer.Option(help="Older messages are passed over; see kube-apiserver's --event-ttl.", min=0)
    ] = 60,
    metrics_address: MetricsAddress = None,
) -> None:
    """Write messages into Kubernetes as events of their pods, until SIGTERM. Each cluster needs a process of its own.

    Retries of a pod for the same reason share one event, whose series counts them. The role needs create, get, list
    and patch of events in events.k8s.io, and get of pods.
    """
    # The clients take their time to import: only this command needs them.
    from kube.credentials import from_kubeconfig, in_cluster
    from pipeline.kube_events.event_writer import EventPolicy
    from pipeline.kube_events.process import Settings, run

    policy = EventPolicy(cluster_name, frozenset(scheduler or ()), timedelta(minutes=max_age_minutes))
    load = from_kubeconfig(kubeconfig, context) if kubeconfig else in_cluster
    logs.configure()
    # A group of its own: the processes of two clusters would each read a part of the messages.
    group = group or f"schedulerlog-events-{cluster_name}"
    settings = Settings(kafka, group, load, kube_api_qps, kube_api_burst, linger_seconds, metrics_address, policy)
    with one_line_for(SettingError, KubeConfigError), one_line_for(NotProvisionedError, status=1):
        asyncio.run(run(settings))

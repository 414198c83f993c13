"""The commands that run until they are stopped: they serve gRPC, read a topic, or watch a cluster."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import typer

from ingest.errors import MistakeError
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.node_checks import HamiNodeChecks
from ingest.readers.kube.refusal_judge import RefusalJudge
from ingest.readers.kube.watch import watch
from ingest.readers.sniffer.reader import SnifferLog
from ingest.reading.kafka import KafkaSink
from ingest.reading.lease import ReaderLease
from ingest.reading.metrics import Metrics
from ingest.reading.options import ClusterOptions, GrpcOptions, IngestSettings, RawLogsSettings, WatchSettings
from ingest.reading.protocol import report_counts
from ingest.reading.trusted_containers import TrustedContainers
from ingest.reading.trusted_reporters import TrustedReporters
from ingest.workloads.object_store import WorkloadObjects
from ingest.workloads.pod_waits import PodWaitObserver
from ingest.workloads.waiting import WaitObserver
from ingest.workloads.watches import WorkloadWatches
from runtime.kubernetes.credentials import LoadConfiguration, choose_loader
from runtime.settings.addresses import HostPort
from runtime.signals import create_stop_event
from runtime.telemetry import logs
from runtime.telemetry.health import ServeHealth, report_no_problem, serving


def serve_sniffer(settings: IngestSettings, address: HostPort, options: GrpcOptions, namespace: str) -> None:
    logs.configure(settings)
    reader = SnifferLog(namespace, cluster=settings.cluster_name)
    asyncio.run(_serve_sniffer(settings, address, options, reader))


async def _serve_sniffer(settings: IngestSettings, address: HostPort, options: GrpcOptions, reader: SnifferLog) -> None:
    # gRPC is slow to import, and the other sources do without it.
    from ingest.readers.sniffer.credentials import create_credentials
    from ingest.readers.sniffer.service import create_server

    credentials = create_credentials(address, options)

    stop = create_stop_event()
    metrics, sink = Metrics("sniffer"), KafkaSink(settings.kafka)

    async def take(request: dict[str, str]) -> None:
        # The gRPC call is answered after Kafka has the events.
        await sink.send(reader.send(request, datetime.now(UTC)))
        metrics.note(reader.counts)

    with serving(settings.metrics_address, metrics.registry, report_no_problem, sink.describe_wait):
        async with sink:
            try:
                running, port = create_server(str(address), take, credentials)
            except OSError as error:
                raise MistakeError(f"--listen: {error}") from None
            await running.start()
            typer.echo(f"listening on {HostPort(address.host, port)}", err=True)
            await stop.wait()
            await running.stop(grace=5)
    typer.echo(report_counts(reader.counts), err=True)


def read_raw_logs(settings: RawLogsSettings, group: str) -> None:
    logs.configure(settings)
    asyncio.run(_read_raw_logs(settings, group))


async def _read_raw_logs(settings: RawLogsSettings, group: str) -> None:
    # Faust is slow to import, and the other sources do without it.
    from ingest.readers.raw_logs.app import serve

    metrics, sink = Metrics("raw-logs"), KafkaSink(settings.kafka)
    with serving(settings.metrics_address, metrics.registry, report_no_problem, sink.describe_wait):
        async with sink:
            trusted = TrustedContainers(settings.raw_logs_containers)
            stop, cluster = create_stop_event(), settings.cluster_name
            raw_logs = await serve(sink, settings.kafka, stop, group, metrics, trusted=trusted, cluster=cluster)
    for (name, outcome), count in sorted(raw_logs.count_lines().items()):
        typer.echo(f"{name or 'no scheduler'}: {count} lines {outcome}", err=True)


def watch_cluster(settings: WatchSettings, options: ClusterOptions) -> None:
    load = choose_loader(options.kubeconfig, options.context)
    logs.configure(settings)
    asyncio.run(_watch_until_stopped(load, settings, options))


async def _watch_until_stopped(load: LoadConfiguration, settings: WatchSettings, options: ClusterOptions) -> None:
    until = create_stop_event().is_set
    await work_on_cluster(load, settings, options.namespace, until, group=options.lease)


async def work_on_cluster(
    load: LoadConfiguration,
    settings: WatchSettings,
    namespace: str,
    until: Callable[[], bool],
    serve_health: ServeHealth = serving,
    group: str = "",
) -> None:
    """Watch the cluster until ``until()`` is true, then publish what is still open; ``group``: of the lease."""
    objects, reporters = JudgedObjects(), TrustedReporters(settings.event_reporters)
    judge = RefusalJudge(objects)
    reader = KubeEvents(settings.cluster_name, settings.pod_labels, reporters, judge)
    checks = HamiNodeChecks(settings.cluster_name, settings.handshake_timeout)
    waiting = WorkloadObjects()
    workloads = WorkloadWatches(
        WaitObserver(waiting, settings.cluster_name),
        PodWaitObserver(waiting, settings.cluster_name, settings.pod_labels, judge),
    )
    metrics, sink, lease = Metrics("kube-events"), KafkaSink(settings.kafka), ReaderLease(settings.kafka, group)

    async def work() -> None:
        await watch(
            load, reader, sink, metrics, checks=checks, objects=objects, workloads=workloads, namespace=namespace,
            until=until,
        )  # fmt: skip

    with serve_health(
        settings.metrics_address, metrics.registry, report_no_problem, lambda: sink.describe_wait() or lease.waiting
    ):
        async with sink:
            await lease.read(work, until)
    typer.echo(report_counts(reader.counts), err=True)

"""Runs the scheduler: spool, publisher, cluster and HTTP on one event loop, until SIGTERM."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.identity import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.vendors import Vendors
from runtime.http.bodies import Bodies
from runtime.http.descriptors import allow_all_descriptors
from runtime.http.server_tls import Certificates
from runtime.kubernetes.resources import Key
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from runtime.telemetry.health import serving
from runtime.telemetry.spans import NO_TRACING, Tracing
from scheduler import malloc
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_journal import BindJournal
from scheduler.bind.bind_recovery import BindRecovery
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import ClusterApi
from scheduler.cluster.file_cluster import FileCluster
from scheduler.cluster.kubernetes.connect import ApiServerOptions, connect, lease_namespace
from scheduler.cluster.watch_file import FileWatch
from scheduler.hami_compat.klog.writer import KlogWriter, NoKlog
from scheduler.hami_compat.metrics import HamiMetrics
from scheduler.http import server
from scheduler.http.app import SHORTER_BODIES, NotReadyError, create_app, create_webhook
from scheduler.http.callers import AllowedCallers
from scheduler.metrics import Metrics
from scheduler.node_check_task import CheckPolicy, NodeChecks
from scheduler.observe import Observer
from scheduler.own_settings import own_settings
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.spool.spool import Spool, now_utc
from scheduler.publish.spool_writer import SpoolWriter
from scheduler.serve_parts import certificates, klog_writer, open_binds, open_spool, watch_spool
from scheduler.settings import Settings
from scheduler.webhook.admit import AdmissionRules
from scheduler.webhook.review import answer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Where nodes and pods come from. run: follows it until cancelled. close: releases it after that."""

    api: ClusterApi
    locked_nodes: Callable[[], int]
    quota_problem: Callable[[], str]
    run: Callable[[], Coroutine[Any, Any, None]]
    close: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Parts:
    """Everything that runs: the web app and the tasks beside it."""

    app: Starlette
    webhook: Starlette | None
    certificates: Certificates | None
    cluster: "_Cluster"
    checks: NodeChecks
    scheduler: Scheduler
    settler: BindRecovery
    publisher: Publisher | None
    klog: KlogWriter | None
    metrics: Metrics
    hami_metrics: HamiMetrics


async def serve(
    settings: Settings, kafka: KafkaConnectionIfGiven, vendors: Vendors, tracing: Tracing = NO_TRACING
) -> None:
    """Run until SIGTERM or SIGINT. Raises `SettingError`, `ManifestError`, `KubeConfigError`."""
    malloc.keep_freed()
    allow_all_descriptors()
    with (
        contextlib.closing(server.bind(settings.listen)) as listener,
        contextlib.closing(open_spool(settings)) as spool,
        contextlib.closing(open_binds(settings)) as binds,
        contextlib.ExitStack() as stack,
    ):
        hooks = stack.enter_context(_webhook_listener(settings))
        parts = await _assemble(settings, kafka, vendors, spool, binds, tracing)
        stack.enter_context(
            serving(settings.metrics_bind_address, parts.metrics.registry, more=[parts.hami_metrics.text])
        )
        following = asyncio.create_task(parts.cluster.run(), name="cluster")
        others = list(_beside(settings, spool, parts))
        try:
            try:
                context = parts.certificates.context if parts.certificates else None
                webhook = (parts.webhook, hooks) if parts.webhook and hooks else None
                await server.answer(parts.app, listener, context, [following, *others], webhook)
            finally:
                # The lease is given back first: another scheduler may lead while our last records are sent.
                await parts.scheduler.close()
                await _end(following)
                await parts.cluster.close()
            if parts.publisher:
                await parts.publisher.drain(settings.drain_timeout.total_seconds())
        finally:
            # After the drain, since the publisher is one of them.
            await _end(*others)
            if parts.klog:
                parts.klog.close()
        log.info("stopped; %d bytes wait in the spool", spool.unsent_bytes)


def _webhook_listener(settings: Settings) -> "AbstractContextManager[socket.socket | None]":
    address = settings.webhook_listen
    return contextlib.closing(server.bind(address, "--webhook-listen")) if address else contextlib.nullcontext()


async def _end(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _assemble(
    settings: Settings,
    kafka: KafkaConnectionIfGiven,
    vendors: Vendors,
    spool: Spool,
    binds: BindJournal,
    tracing: Tracing,
) -> _Parts:
    """Raises `ManifestError` where the cluster file has a mistake, `KubeConfigError` where the kubeconfig has."""
    metrics = Metrics()
    event_writer, columns = SpoolWriter(spool, now_utc, metrics), ClusterColumns(vendors)
    claims = Claims()
    identity = Identity(settings.cluster_name, settings.name)
    checks = NodeChecks(identity, CheckPolicy(settings.handshake_timeout), columns, event_writer, now_utc, metrics)
    observer = Observer(identity, columns, claims, event_writer, now_utc, checks, settings.pod_labels)
    pair = certificates(settings, metrics)
    cluster = await _open_cluster(settings, observer, claims, metrics)
    watch_spool(metrics, spool, columns)
    metrics.watch("node_locks_held", cluster.locked_nodes)
    metrics.watch("binds_open", lambda: len(binds))
    locks = LockPolicy(settings.node_lock_timeout, settings.node_lock_retry_timeout)
    binder = Binder(cluster.api, locks, vendors=vendors)
    klog = klog_writer(settings, metrics)
    observed = own_settings(settings, kafka, now_utc())
    event_writer.write([observed])
    records = Records(
        event_writer, metrics, klog or NoKlog(), binds, observed.settings_digest, settings.pod_labels, tracing
    )
    policy = SchedulingPolicy(settings.node_policy, settings.device_policy)
    parts = (columns, cluster.api, claims, binder, records, now_utc)
    scheduler = Scheduler(identity, policy, *parts, settings.bind_timeout)
    rules = AdmissionRules(settings.name, settings.force_overwrite_default_scheduler, vendors)

    def review(body: bytes) -> bytes:
        if problem := cluster.quota_problem():
            raise NotReadyError(problem)
        return answer(body, rules, columns.quotas)

    at_its_own = bool(settings.webhook_listen)
    bodies = Bodies(settings.max_body_size, SHORTER_BODIES)
    webhook = create_webhook(review, metrics, bodies) if at_its_own else None
    # The cluster is read before anything listens, and a broken edit leaves it as it was.
    app = create_app(
        scheduler,
        metrics,
        lambda: {"spool": spool.problem or spool.reading.text, "cluster": cluster.api.problem()},
        bodies,
        simulates_whole_nodes=settings.whole_nodes == "simulate",
        review=None if at_its_own else review,
        callers=AllowedCallers(settings.client_ca_file is not None, settings.loopback_callers_only),
    )
    publisher = Publisher(spool, kafka.required(), now_utc, metrics, tracing=tracing) if settings.publish else None
    settler = BindRecovery(binds, cluster.api, event_writer, now_utc)
    return _Parts(
        app, webhook, pair, cluster, checks, scheduler, settler, publisher, klog, metrics, HamiMetrics(columns)
    )


async def _open_cluster(settings: Settings, observer: Observer, claims: Claims, metrics: Metrics) -> _Cluster:
    if settings.cluster is None:
        cluster = await connect(_api_server(settings), observer, claims, metrics)
        return _Cluster(cluster, cluster.locked_nodes, cluster.quota_problem, cluster.run, cluster.close)
    file = FileCluster(observer)
    watch = FileWatch(settings.cluster, file, metrics)
    # The first reading may end the start; a mistake in a later edit is only logged.
    watch.load()
    # A file has its quotas from the start, and needs no closing.
    return _Cluster(file, file.locked_nodes, str, watch.run, lambda: asyncio.sleep(0))


def _api_server(settings: Settings) -> ApiServerOptions:
    lease = Key(settings.leader_elect_resource_namespace or lease_namespace(), settings.leader_elect_resource_name)
    return ApiServerOptions(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        qps=settings.kube_qps,
        burst=settings.kube_burst,
        timeout_seconds=settings.kube_timeout.total_seconds(),
        node_labels=settings.node_label_selector,
        lease=lease if settings.leader_elect else None,
        terms=settings.lease_timings,
        leads_with_kube_scheduler=settings.leader_elect_with_kube_scheduler,
    )


def _beside(settings: Settings, spool: Spool, parts: _Parts) -> "Iterator[asyncio.Task[None]]":
    yield asyncio.create_task(parts.checks.run(), name="node checks")
    yield asyncio.create_task(parts.scheduler.states.run(), name="node states")
    yield asyncio.create_task(parts.settler.run(), name="settle binds")
    if parts.certificates:
        yield asyncio.create_task(parts.certificates.run(), name="certificate")
    if parts.publisher:
        yield asyncio.create_task(parts.publisher.run(), name="publish")
    if settings.spool_sync == "interval":
        yield asyncio.create_task(spool.sync_every(), name="sync")

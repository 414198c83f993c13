"""Assembly of the scheduler: opens what it runs on, and connects its parts, as the settings name them."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from starlette.applications import Starlette

from engine.admission.admit import AdmissionRules
from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.vendors import Vendors
from runtime.cli.installation import VERSION
from runtime.errors import SettingError
from runtime.http.bodies import Bodies
from runtime.http.server_tls import BrokenPairError, CertificatePair, Certificates
from runtime.kubernetes.resources import Key
from runtime.settings.addresses import without_user_info
from runtime.settings.flags import list_public_settings
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from runtime.telemetry.spans import Tracing
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_journal import FILE, BindJournal
from scheduler.bind.bind_recovery import BindRecovery
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import ClusterApi
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.cluster.kubernetes.connect import ApiServerOptions, connect, find_lease_namespace
from scheduler.cluster.watch_file import FileWatch
from scheduler.hami_compat.klog.writer import KlogWriter, NoKlog
from scheduler.hami_compat.metrics import HamiMetrics
from scheduler.http.app import SHORTER_BODIES, AllowedCallers, NotReadyError, create_app, create_webhook
from scheduler.metrics import Metrics
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.node_checks import CheckPolicy, NodeChecks
from scheduler.publish.observer import Observer
from scheduler.publish.spool.files import FAILURES, explain
from scheduler.publish.spool.spool import Spool, SpoolInUseError, SpoolLimits, get_now
from scheduler.publish.spool_writer import SpoolWriter
from scheduler.settings import Settings
from scheduler.webhook.review import answer
from schemas.events import SchedulerObserved, compute_settings_digest

IMPLEMENTATION: Final = "schedulerlog"
DEVICE_CONFIG: Final = "device-config-digest"
"""Name of a setting that is equal for equal contents of the device configuration."""


def describe_settings(settings: Settings, kafka: KafkaConnectionIfGiven, started_at: datetime) -> SchedulerObserved:
    """Describe every setting in force, by the name of its flag. The list holds no secret."""
    # Of a URL that was given for HOST:PORT, a password must not be published.
    in_force = {
        name: without_user_info(text)
        for name, text in (list_public_settings(settings) | list_public_settings(kafka)).items()
    }
    in_force[DEVICE_CONFIG] = _digest(settings)
    return SchedulerObserved(
        cluster=settings.cluster_name,
        scheduler=settings.name,
        observed_at=started_at,
        instance=os.environ.get("POD_NAME") or socket.gethostname(),
        implementation=IMPLEMENTATION,
        version=VERSION,
        settings=in_force,
        settings_digest=compute_settings_digest(IMPLEMENTATION, VERSION, in_force),
    )


def _digest(settings: Settings) -> str:
    try:
        content = (settings.device_config_file or device_config.SHIPPED).read_bytes()
    # It was read before; where it has gone since, its content is not known.
    except OSError:
        return ""
    return blake2b(content, digest_size=8).hexdigest()


def open_spool(settings: Settings) -> Spool:
    """Open the spool. Raises `SettingError` where another process uses it, or it can't be written."""
    try:
        return Spool(settings.spool, SpoolLimits(max_bytes=settings.spool_max_size, sync=settings.spool_sync))
    except SpoolInUseError as error:
        raise SettingError(f"--spool: {error}") from None
    except FAILURES as error:
        raise SettingError(f"--spool: {settings.spool} can't be used: {explain(error)}") from None


def open_binds(settings: Settings) -> BindJournal:
    """Open the journal of binds. Raises `SettingError` where the last process's file can't be read."""
    try:
        return BindJournal(settings.spool, syncs=settings.spool_sync == "always")
    except FAILURES as error:
        raise SettingError(
            f"--spool: {settings.spool / FILE} can't be read: {explain(error)}. Repair the disk, or move the file"
            " away: the binds in it then remain unreported"
        ) from None


def open_certificates(settings: Settings, metrics: Metrics) -> Certificates | None:
    """Open the certificate; None for plain HTTP. Raises `SettingError` for files that can't be used."""
    if not settings.cert_file or not settings.key_file:
        return None
    try:
        pair = Certificates(CertificatePair(settings.cert_file, settings.key_file, client_ca=settings.client_ca_file))
    except BrokenPairError as error:
        raise SettingError(str(error)) from None
    metrics.watch(
        "certificate_is_broken",
        lambda: float(bool(pair.problem)),
    )
    metrics.watch("certificate_reloads", lambda: pair.reloads)
    return pair


def open_klog(settings: Settings, metrics: Metrics) -> KlogWriter | None:
    """Open HAMi's log; None without `-v`."""
    if settings.verbosity is None:
        return None
    writer = KlogWriter(settings.verbosity)
    metrics.watch("klog_dropped_calls", lambda: writer.dropped)
    return writer


def watch_spool(metrics: Metrics, spool: Spool, columns: ClusterColumns) -> None:
    """Show the state of the spool as metrics."""
    watched: dict[str, Callable[[], float]] = {
        "spool_bytes": lambda: spool.unsent_bytes,
        "spool_oldest_age_seconds": spool.measure_oldest_age,
        "spool_is_failing": lambda: float(bool(spool.problem or spool.reading.text)),
        "spool_dropped_detail_records": lambda: spool.dropped_detail,
        "spool_dropped_decision_records": lambda: spool.dropped_verdicts,
        "spool_damaged_places": lambda: spool.counts.damaged,
        "registered_nodes": lambda: len(columns.node_names),
        "withheld_nodes": columns.count_withheld,
    }
    for name, read in watched.items():
        metrics.watch(name, read)


@dataclass(frozen=True, slots=True)
class FollowedCluster:
    """Source of nodes and pods. run: follows it until cancelled. close: releases it after that."""

    api: ClusterApi
    count_locked_nodes: Callable[[], int]
    find_quota_problem: Callable[[], str]
    run: Callable[[], Coroutine[Any, Any, None]]
    close: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that runs: the web app and the tasks next to it."""

    app: Starlette
    webhook: Starlette | None
    certificates: Certificates | None
    cluster: FollowedCluster
    checks: NodeChecks
    scheduler: Scheduler
    settler: BindRecovery
    publisher: Publisher | None
    klog: KlogWriter | None
    metrics: Metrics
    hami_metrics: HamiMetrics


async def assemble(
    settings: Settings,
    kafka: KafkaConnectionIfGiven,
    vendors: Vendors,
    spool: Spool,
    binds: BindJournal,
    tracing: Tracing,
) -> Assembly:
    """Assemble the scheduler. Raises `ManifestError` where the cluster file has a mistake, `KubeConfigError` where the
    kubeconfig has."""
    metrics = Metrics()
    event_writer, columns = SpoolWriter(spool, get_now, metrics), ClusterColumns(vendors)
    claims = Claims()
    identity = Identity(settings.cluster_name, settings.name)
    checks = NodeChecks(identity, CheckPolicy(settings.handshake_timeout), columns, event_writer, get_now, metrics)
    observer = Observer(
        identity, columns, claims, event_writer, get_now, checks, settings.pod_labels, settings.share_nodes_with
    )
    pair = open_certificates(settings, metrics)
    cluster = await _open_cluster(settings, observer, claims, metrics)
    watch_spool(metrics, spool, columns)
    metrics.watch("node_locks_held", cluster.count_locked_nodes)
    metrics.watch("binds_open", lambda: len(binds))
    locks = LockPolicy(settings.node_lock_timeout, settings.node_lock_retry_timeout)
    binder = Binder(cluster.api, locks, vendors=vendors)
    klog = open_klog(settings, metrics)
    observed = describe_settings(settings, kafka, get_now())
    event_writer.write([observed])
    records = Records(
        event_writer, metrics, klog or NoKlog(), binds, observed.settings_digest, settings.pod_labels, tracing
    )
    policy = SchedulingPolicy(settings.node_policy, settings.device_policy)
    parts = (columns, cluster.api, claims, binder, records, get_now)
    scheduler = Scheduler(
        identity, policy, *parts, settings.bind_timeout, spool.advance_epoch(), observer.accept_scheduler
    )
    rules = AdmissionRules(settings.name, settings.force_overwrite_default_scheduler, vendors)

    def review(body: bytes) -> bytes:
        if problem := cluster.find_quota_problem():
            raise NotReadyError(problem)
        return answer(body, rules, columns.quotas)

    at_its_own = bool(settings.webhook_listen)
    bodies = Bodies(settings.max_body_size, SHORTER_BODIES)
    webhook = create_webhook(review, metrics, bodies) if at_its_own else None
    # The cluster is read before anything listens, and a broken edit leaves it as it was.
    app = create_app(
        scheduler,
        metrics,
        lambda: {"spool": spool.problem or spool.reading.text, "cluster": cluster.api.find_problem()},
        bodies,
        simulates_whole_nodes=settings.whole_nodes == "simulate",
        review=None if at_its_own else review,
        callers=AllowedCallers(settings.client_ca_file is not None, settings.loopback_callers_only),
    )
    publisher = (
        Publisher(spool, kafka.require_addresses(), get_now, metrics, tracing=tracing) if settings.publish else None
    )
    settler = BindRecovery(binds, cluster.api, event_writer, get_now)
    return Assembly(
        app, webhook, pair, cluster, checks, scheduler, settler, publisher, klog, metrics, HamiMetrics(columns)
    )


async def _open_cluster(settings: Settings, observer: Observer, claims: Claims, metrics: Metrics) -> FollowedCluster:
    if settings.cluster is None:
        cluster = await connect(_to_api_server(settings), observer, claims, metrics)
        return FollowedCluster(
            cluster, cluster.count_locked_nodes, cluster.find_quota_problem, cluster.run, cluster.close
        )
    file = SimulatedCluster(observer)
    watch = FileWatch(settings.cluster, file, metrics)
    # The first reading may end the start; a mistake in a later edit is only logged.
    watch.load()
    # A file has its quotas from the start, and needs no closing.
    return FollowedCluster(file, file.count_locked_nodes, str, watch.run, lambda: asyncio.sleep(0))


def _to_api_server(settings: Settings) -> ApiServerOptions:
    lease = Key(settings.leader_elect_resource_namespace or find_lease_namespace(), settings.leader_elect_resource_name)
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

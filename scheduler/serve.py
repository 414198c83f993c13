"""Everything that `serve` runs, put together: spool, publisher, cluster, HTTP; one event loop, ended by SIGTERM."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.applications import Starlette

from scheduler import listen
from scheduler.bind import Binder
from scheduler.cluster.claims import Claims
from scheduler.cluster.file_cluster import FileCluster
from scheduler.cluster.watch_file import FileWatch
from scheduler.devices.columns import ClusterColumns
from scheduler.http import create_app
from scheduler.klog.writer import KlogWriter
from scheduler.metrics import Metrics
from scheduler.observe import Observer
from scheduler.publish import Publisher
from scheduler.service import Scheduler, Teller
from scheduler.settings import SettingError, Settings
from scheduler.spool.spool import Spool, SpoolInUseError, now_utc
from scheduler.tls import BrokenPairError, Certificates
from scheduler.webhook.admit import Rules
from scheduler.webhook.review import answer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs: the web app, and what goes on beside it."""

    app: Starlette
    certificates: Certificates | None
    watch: FileWatch
    publisher: Publisher | None
    klog: KlogWriter | None


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises `SettingError`, `ManifestError`."""
    with (
        contextlib.closing(listen.bind(settings.host, settings.port)) as listener,
        contextlib.closing(_open_spool(settings)) as spool,
    ):
        parts = _assemble(settings, spool)
        tasks = list(_beside(settings, spool, parts))
        try:
            context = parts.certificates.context if parts.certificates else None
            await listen.answer(parts.app, listener, context, tasks)
            if parts.publisher:
                await parts.publisher.drain(settings.drain_seconds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if parts.klog:
                parts.klog.close()
        log.info("stopped; %d bytes wait in the spool", spool.unsent_bytes)


def _assemble(settings: Settings, spool: Spool) -> _Parts:
    """Raises `ManifestError` where the cluster file has a mistake."""
    metrics = Metrics()
    teller, columns = Teller(spool, now_utc, metrics), ClusterColumns(settings.vendors)
    claims = Claims()
    cluster = FileCluster(Observer(settings.name, columns, claims, teller, now_utc))
    watch = FileWatch(settings.cluster, cluster, metrics)
    watch.load()
    _watch_spool(metrics, spool, columns)
    certificates = _certificates(settings, metrics)
    binder = Binder(cluster, settings.lock)
    klog = _klog(settings, metrics)
    parts = (columns, cluster, claims, binder, teller, now_utc, metrics, klog)
    scheduler = Scheduler(settings.name, settings.policy, *parts)
    rules = Rules(settings.name, settings.overwrites_default_scheduler, settings.vendors)
    # The cluster is read before anything listens, and a broken edit leaves it as it was.
    app = create_app(
        scheduler,
        metrics,
        lambda: {"spool": spool.problem, "cluster": ""},
        settings.max_body_bytes,
        simulates_whole_nodes=settings.simulates_whole_nodes,
        review=lambda body: answer(body, rules, columns.quotas),
    )
    publisher = Publisher(spool, settings.kafka, now_utc, metrics) if settings.kafka else None
    return _Parts(app, certificates, watch, publisher, klog)


def _beside(settings: Settings, spool: Spool, parts: _Parts) -> "Iterator[asyncio.Task[None]]":
    yield asyncio.create_task(parts.watch.run(), name="cluster file")
    if parts.certificates:
        yield asyncio.create_task(parts.certificates.run(), name="certificate")
    if parts.publisher:
        yield asyncio.create_task(parts.publisher.run(), name="publish")
    if settings.limits.sync == "interval":
        yield asyncio.create_task(spool.sync_every(), name="sync")


def _open_spool(settings: Settings) -> Spool:
    try:
        return Spool(settings.spool, settings.limits)
    except SpoolInUseError as error:
        raise SettingError(f"--spool: {error}") from None
    except OSError as error:
        raise SettingError(f"--spool: {settings.spool} can't be used: {error.strerror or error}") from None


def _certificates(settings: Settings, metrics: Metrics) -> Certificates | None:
    if settings.certificate is None:
        return None
    try:
        found = Certificates(settings.certificate)
    except BrokenPairError as error:
        raise SettingError(str(error)) from None
    metrics.watch(
        "certificate_is_broken",
        "1 while the certificate files can't be used and the pair loaded before stays in force.",
        lambda: float(bool(found.problem)),
    )
    metrics.watch("certificate_reloads", "Times a new certificate was taken.", lambda: found.reloads)
    return found


def _klog(settings: Settings, metrics: Metrics) -> KlogWriter | None:
    if settings.verbosity is None:
        return None
    writer = KlogWriter(settings.verbosity)
    metrics.watch("klog_dropped", "Attempts and binds that --v left out, unread lines waiting.", lambda: writer.dropped)
    return writer


def _watch_spool(metrics: Metrics, spool: Spool, columns: ClusterColumns) -> None:
    watched = {
        "spool_bytes": ("Bytes that Kafka does not have yet.", lambda: spool.unsent_bytes),
        "spool_oldest_age_seconds": ("How long the oldest of them has waited.", spool.oldest_age_seconds),
        "spool_is_failing": ("1 while the disk can't be written and decisions wait in memory.",
                             lambda: float(bool(spool.problem))),
        "spool_dropped_detail_records": ("Device detail given up for want of room.", lambda: spool.dropped_detail),
        "spool_dropped_decision_records": ("Other records lost for want of room.", lambda: spool.dropped_verdicts),
        "spool_damaged_places": ("Places in spool files that could not be read.", lambda: spool.counts.damaged),
        "registered_nodes": ("Nodes whose devices are known.", lambda: len(columns.node_names)),
    }  # fmt: skip
    for name, (about, read) in watched.items():
        metrics.watch(name, about, read)

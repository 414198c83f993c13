"""Everything that `serve` runs, put together: spool, publisher, cluster, HTTP; one event loop, ended by SIGTERM."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from scheduler.bind import Binder
from scheduler.cluster.file_cluster import FileCluster
from scheduler.cluster.watch_file import FileWatch
from scheduler.devices.columns import ClusterColumns
from scheduler.http import create_app
from scheduler.metrics import Metrics
from scheduler.observe import Observer
from scheduler.publish import Publisher
from scheduler.service import Scheduler, Teller
from scheduler.settings import SettingError, Settings
from scheduler.spool.spool import Spool, SpoolInUseError, now_utc

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again once it has stopped, before the spool is sent.
        yield


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs: the web app, and what goes on beside it."""

    app: Starlette
    watch: FileWatch
    publisher: Publisher | None


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises `SettingError`, `ManifestError`."""
    with (
        contextlib.closing(_listen(settings.host, settings.port)) as listener,
        contextlib.closing(_open_spool(settings)) as spool,
    ):
        parts = _assemble(settings, spool)
        tasks = list(_beside(settings, spool, parts))
        try:
            await _answer(parts.app, listener, tasks)
            if parts.publisher:
                await parts.publisher.drain(settings.drain_seconds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        log.info("stopped; %d bytes wait in the spool", spool.unsent_bytes)


def _assemble(settings: Settings, spool: Spool) -> _Parts:
    """Raises `ManifestError` where the cluster file has a mistake."""
    metrics = Metrics()
    teller, columns = Teller(spool, now_utc, metrics), ClusterColumns()
    cluster = FileCluster(Observer(settings.name, columns, teller, now_utc))
    watch = FileWatch(settings.cluster, cluster, metrics)
    watch.load()
    _watch_spool(metrics, spool, columns)
    binder = Binder(cluster, settings.lock)
    scheduler = Scheduler(settings.name, settings.policy, columns, cluster, binder, teller, now_utc, metrics)
    # The cluster is read before anything listens, and a broken edit leaves it as it was.
    app = create_app(scheduler, metrics, lambda: {"spool": spool.problem, "cluster": ""}, settings.max_body_bytes)
    return _Parts(app, watch, Publisher(spool, settings.kafka, now_utc, metrics) if settings.kafka else None)


def _beside(settings: Settings, spool: Spool, parts: _Parts) -> "Iterator[asyncio.Task[None]]":
    yield asyncio.create_task(parts.watch.run(), name="cluster file")
    if parts.publisher:
        yield asyncio.create_task(parts.publisher.run(), name="publish")
    if settings.limits.sync == "interval":
        yield asyncio.create_task(spool.sync_every(), name="sync")


def _listen(host: str, port: int) -> socket.socket:
    """Raises `SettingError` where the address can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named asyncio switches Nagle's delay off; without, every small answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingError(f"--port: {port} on {host} is in use by another process, give another port") from None
        raise SettingError(f"--host, --port: can't listen on {host}:{port}: {error.strerror or error}") from None
    return listener


def _open_spool(settings: Settings) -> Spool:
    try:
        return Spool(settings.spool, settings.limits)
    except SpoolInUseError as error:
        raise SettingError(f"--spool: {error}") from None
    except OSError as error:
        raise SettingError(f"--spool: {settings.spool} can't be used: {error.strerror or error}") from None


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


async def _answer(app: Starlette, listener: socket.socket, tasks: "list[asyncio.Task[None]]") -> None:
    """Serve until a signal; a task that ends by itself has failed, and ends the process with its error."""
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=5,
            # Longer than kube-scheduler lets a connection lie idle between two pods of a quiet minute.
            timeout_keep_alive=75,
        )
    )

    def stop() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    for task in tasks:
        task.add_done_callback(lambda _: stop())
    host, port = listener.getsockname()[:2]
    log.info("answering kube-scheduler on http://%s:%d", host, port)
    await server.serve(sockets=[listener])
    for task in tasks:
        if task.done() and not task.cancelled():
            task.result()

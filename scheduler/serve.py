"""Everything that `serve` runs, put together: spool, publisher, cluster, HTTP; one event loop, ended by SIGTERM."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import uvicorn

from scheduler.bind import Binder
from scheduler.columns import ClusterColumns
from scheduler.file_cluster import FileCluster
from scheduler.http import create_app
from scheduler.metrics import Metrics
from scheduler.observe import Observer
from scheduler.publish import Publisher
from scheduler.service import Scheduler, Teller
from scheduler.settings import SettingError, Settings
from scheduler.spool import Spool, SpoolInUseError, now_utc
from scheduler.watch_file import FileWatch

log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again once it has stopped, before the spool is sent.
        yield


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises `SettingError`, `ManifestError`."""
    listener = _listen(settings.host, settings.port)
    with contextlib.closing(_open_spool(settings)) as spool:
        metrics = Metrics()
        teller = Teller(spool, now_utc, metrics)
        columns = ClusterColumns()
        cluster = FileCluster(Observer(settings.name, columns, teller, now_utc))
        watch = FileWatch(settings.cluster, cluster, metrics)
        watch.load()
        binder = Binder(cluster, settings.lock)
        scheduler = Scheduler(settings.name, settings.policy, columns, cluster, binder, teller, now_utc, metrics)
        publisher = Publisher(spool, settings.kafka, now_utc, metrics) if settings.kafka else None
        _watch_spool(metrics, spool, columns)
        app = create_app(scheduler, metrics, lambda: {"spool": spool.problem, "cluster": ""}, settings.max_body_bytes)
        server = _Server(
            uvicorn.Config(
                app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=5, server_header=False
            )
        )
        tasks = [_task(watch.run(), "cluster file")]
        tasks += [_task(publisher.run(), "publish")] if publisher else []
        tasks += [_task(spool.sync_every(), "sync")] if settings.limits.sync == "interval" else []
        try:
            await _run(server, listener, tasks)
            if publisher:
                await publisher.drain(settings.drain_seconds)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        log.info("stopped; %d bytes wait in the spool", spool.unsent_bytes)


def _listen(host: str, port: int) -> socket.socket:
    """Raises `SettingError` where the address can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
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


def _task(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
    return asyncio.create_task(work, name=name)


async def _run(server: uvicorn.Server, listener: socket.socket, tasks: "list[asyncio.Task[None]]") -> None:
    """Serve until a signal; a task that ends by itself has failed, and ends the process with its error."""

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

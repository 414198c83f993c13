"""Runs the scheduler: spool, publisher, cluster and HTTP on one event loop, until SIGTERM."""

import asyncio
import contextlib
import ctypes
import logging
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from engine.hami.vendors import Vendors
from runtime.http.tls_listener import allow_all_descriptors
from runtime.settings.kafka_connection import KafkaConnectionIfGiven
from runtime.telemetry.health import serving
from runtime.telemetry.spans import NO_TRACING, Tracing
from scheduler.assembly import Assembly, assemble, open_binds, open_spool
from scheduler.http import server
from scheduler.publish.spool.spool import Spool
from scheduler.settings import Settings

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""From glibc's malloc.h."""

_LARGEST_COLUMN: Final = 32 * 1024 * 1024  # the most that glibc takes for the second of the two on 64 bits
_RETAINED_BYTES: Final = 64 * 1024 * 1024


def keep_freed() -> None:
    """Use the memory of one decision for the next.

    By default glibc returns large columns to the kernel at once and asks for them again: a fifth of the system time
    of a filter call on 5,000 nodes. Other C libraries have no such setting; there nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST_COLUMN)
        libc.mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)


log = logging.getLogger(__name__)


async def serve(
    settings: Settings, kafka: KafkaConnectionIfGiven, vendors: Vendors, tracing: Tracing = NO_TRACING
) -> None:
    """Run until SIGTERM or SIGINT. Raises `SettingError`, `ManifestError`, `KubeConfigError`."""
    keep_freed()
    allow_all_descriptors()
    with (
        contextlib.closing(server.bind(settings.listen)) as listener,
        contextlib.closing(open_spool(settings)) as spool,
        contextlib.closing(open_binds(settings)) as binds,
        contextlib.ExitStack() as stack,
    ):
        hooks = stack.enter_context(_open_webhook_listener(settings))
        parts = await assemble(settings, kafka, vendors, spool, binds, tracing)
        stack.enter_context(
            serving(settings.metrics_bind_address, parts.metrics.registry, more=[parts.hami_metrics.render])
        )
        following = asyncio.create_task(parts.cluster.run(), name="cluster")
        others = list(_start_tasks(settings, spool, parts))
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


def _open_webhook_listener(settings: Settings) -> "AbstractContextManager[socket.socket | None]":
    address = settings.webhook_listen
    return contextlib.closing(server.bind(address, "--webhook-listen")) if address else contextlib.nullcontext()


async def _end(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _start_tasks(settings: Settings, spool: Spool, parts: Assembly) -> "Iterator[asyncio.Task[None]]":
    yield asyncio.create_task(parts.checks.run(), name="node checks")
    yield asyncio.create_task(parts.scheduler.states.run(), name="node states")
    yield asyncio.create_task(parts.settler.run(), name="settle binds")
    if parts.certificates:
        yield asyncio.create_task(parts.certificates.run(), name="certificate")
    if parts.publisher:
        yield asyncio.create_task(parts.publisher.run(), name="publish")
    if settings.spool_sync == "interval":
        yield asyncio.create_task(spool.sync_every(), name="sync")

"""The scheduler's HTTP app on a generated fleet.

``python -m dev.bench.deciding NODES PODS CHANGED PORT SPOOL [KAFKA | silent]`` is built as ``scheduler serve``, but
without reading a cluster file: YAML of 45,000 objects takes minutes. Before each call, CHANGED nodes change. With
``silent`` nothing is recorded; with ``KAFKA``, the addresses of brokers, the records are published as well. Spans are
sent where ``SCHEDULERLOG_OTLP_ENDPOINT`` names a collector.
"""

import asyncio
import contextlib
import random
import sys
from collections.abc import Iterable
from pathlib import Path

from dev.bench import cluster, fleet
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from runtime.http.bodies import Bodies
from runtime.settings.addresses import LOOPBACK, HostPort
from runtime.settings.kafka_connection import build_kafka_connection
from runtime.telemetry.tracing import TracingSettings, tracing
from scheduler.answering.extender_protocol import FilterRequest
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.http import server
from scheduler.http.app import create_app
from scheduler.metrics import Metrics
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.observer import Observer
from scheduler.publish.spool.spool import Spool, SpoolBatch, get_now
from scheduler.publish.spool_writer import SpoolWriter
from scheduler.serve import keep_freed
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import Event

SILENT = "silent"
# Beyond every file's number, so that all that was written counts as sent.
EVERYTHING = SpoolBatch((), (2**40, 0))


class SilentWriter(SpoolWriter):
    """Forgets every event before anything is made of it."""

    def write(self, events: Iterable[Event], trace: Trace = NO_TRACE) -> None:
        """Write nothing."""


async def send_unread(spool: Spool) -> None:
    """Acknowledge every record at once, so that the spool deletes its files as it does with a running Kafka."""
    while True:
        await spool.arrived.wait()
        spool.arrived.clear()
        spool.acknowledge(EVERYTHING)


class ChangingScheduler(Scheduler):
    """Finds other nodes changed at each filter call, none of which takes another pod by it."""

    def change_nodes(self, columns: ClusterColumns, nodes: int, changed: int) -> "ChangingScheduler":
        """Change so many of the ``nodes`` nodes before each call."""
        self._columns, self._names, self._changed = columns, fleet.list_node_names(nodes), changed
        self._chance = random.Random(nodes)
        return self

    async def filter(self, request: FilterRequest, trace: Trace = NO_TRACE) -> bytes:
        """Filter after changing the nodes, and return the reply."""
        cluster.change_nodes(self._columns, self._chance.sample(self._names, self._changed))
        return await super().filter(request, trace)


class SilentScheduler(ChangingScheduler):
    """Records nothing, so it has nothing to compare."""

    def _find_unchanged(self, *_: object) -> None:
        """Find nothing."""


async def serve(nodes: int, pods: int, changed: int, port: int, folder: Path, recording: str) -> None:
    identity = Identity("default", "bench")
    # As ``scheduler serve`` does: without it each call would pay for pages that the one before gave back.
    keep_freed()
    metrics, columns, claims = Metrics(), ClusterColumns(), Claims()
    with contextlib.closing(Spool(folder)) as spool, contextlib.ExitStack() as spans:
        event_writer = (SilentWriter if recording == SILENT else SpoolWriter)(spool, get_now, metrics)
        api = SimulatedCluster(Observer(identity, columns, claims, event_writer, get_now))
        api.apply(fleet.build_manifest(nodes, pods))
        binder = Binder(api, LockPolicy())
        records = Records(event_writer, metrics, tracing=spans.enter_context(tracing(TracingSettings(), "bench")))
        parts = (columns, api, claims, binder, records, get_now)
        kind = SilentScheduler if recording == SILENT else ChangingScheduler
        scheduler = kind(identity, SchedulingPolicy(), *parts).change_nodes(columns, nodes, changed)
        app = create_app(scheduler, metrics, lambda: {"spool": spool.problem}, Bodies(32 * 1024 * 1024))
        publisher = (
            Publisher(spool, build_kafka_connection(recording), get_now, metrics)
            if recording not in ("", SILENT)
            else None
        )
        tasks = [asyncio.create_task(publisher.run() if publisher else send_unread(spool))]
        await server.answer(app, server.bind(HostPort(LOOPBACK, port)), None, tasks)


if __name__ == "__main__":
    nodes, pods, changed, port = map(int, sys.argv[1:5])
    asyncio.run(serve(nodes, pods, changed, port, Path(sys.argv[5]), "".join(sys.argv[6:])))

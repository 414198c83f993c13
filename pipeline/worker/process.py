"""The worker as a process: reads, folds and writes until it is told to end or can't go on."""

import asyncio
import gc
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy.ma  # noqa: F401 - np.unique would load it, a tenth of a second, over the first attempt

from broker.errors import KafkaError
from broker.topics import require, topic_names
from pipeline.settings import Settings
from pipeline.sinks.kafka import topics_sink
from pipeline.sinks.opensearch import OpenSearchSink, client
from pipeline.worker import faust_app
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.metrics import Metrics
from pipeline.worker.watchdog import Watchdog, lag
from pipeline.worker.writer_pool import WriterPool
from pipeline.worker.writes import WriterPolicy
from process.addresses import HostPort
from process.backoff import Backoff
from process.health import serving
from process.scratch import scratch_folder
from process.signals import first_of, until_stopped
from schemas.topics import ATTEMPTS, DEAD_LETTERS, DECISIONS, FINDINGS, MESSAGES, TRENDS

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.25
STOP_SECONDS: Final = 5.0
RESTART_SECONDS: Final = 1.0
MANY_REBALANCES: Final = 6
WRITERS: Final = 2
"""Two keep an index on one core busy nearly all the time; the batches of more would be smaller."""
_TICKS_BEHIND: Final = 20.0
"""Seconds without a tick after which the event loop counts as dead."""


class StuckError(Exception):
    """The worker does not get on and does not know why: end, and be started again."""


@dataclass(slots=True)
class WorkerState:
    """What the health thread reads."""

    ticked: float
    not_ready: str = "starting"
    lag: int = 0

    def alive(self) -> str:
        behind = time.monotonic() - self.ticked
        return f"the event loop has stood for {behind:.0f} s" if behind > _TICKS_BEHIND else ""

    def ready(self) -> str:
        return self.not_ready


async def run(settings: Settings, metrics_address: HostPort | None) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` where topics or templates are missing, ``StuckError`` where records are there and
    nothing moves, ``SettingError`` where the metrics address is taken.
    """
    # Records are short-lived and hold no cycles: looking through them for garbage finds none.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    await until_stopped(_work(settings, metrics_address))


async def _work(settings: Settings, metrics_address: HostPort | None) -> None:
    metrics, state = Metrics(), WorkerState(time.monotonic())
    health = serving(metrics_address, metrics.registry, state.alive, state.ready)
    with health, scratch_folder("worker") as folder:
        worker = Worker(settings, metrics, state, folder)
        try:
            await worker.work()
        finally:
            await worker.close()


class Worker:
    def __init__(self, settings: Settings, metrics: Metrics, state: WorkerState, folder: Path) -> None:
        self._settings = settings
        self._state = state
        self._folder = folder
        self._metrics = metrics
        self._index = OpenSearchSink(
            client(settings.opensearch_url),
            metrics.index,
            batch_documents=settings.batch_documents,
            batch_bytes=settings.batch_bytes,
            max_backoff_seconds=settings.max_backoff_seconds,
        )
        self._topics = [
            topics_sink(settings.kafka_bootstrap_servers, metrics.topics, settings.max_backoff_seconds)
            for _ in range(WRITERS)
        ]
        self._writers = WriterPool(self._index, self._topics, metrics, _policy(settings))
        self._decisions = DecisionsAgent(
            self._writers,
            metrics,
            incomplete_after_seconds=settings.incomplete_after_seconds,
            store_devices=settings.store_devices,
        )
        self._app: faust_app.App | None = None
        self._taken: list[float] = []
        self._writing: asyncio.Task[None] | None = None
        self._watch()

    def _watch(self) -> None:
        watch = self._metrics.watch
        watch("open_attempts", lambda: self._decisions.open_attempts)
        watch("unacknowledged_records", lambda: self._decisions.unacknowledged)
        watch("queued_bytes", lambda: self._writers.queued_bytes)
        watch("cached_summaries", lambda: self._writers.cached_summaries)
        watch("lag_records", lambda: self._state.lag)
        watch("is_waiting", lambda: self._is_waiting)

    @property
    def _is_waiting(self) -> bool:
        return self._index.is_waiting or any(each.is_waiting for each in self._topics)

    async def work(self) -> None:
        """Read, fold and write; comes back only by an exception."""
        await first_of(self._provisioned(), self._tick())
        self._writing = asyncio.create_task(self._writers.run())
        await first_of(_shielded(self._writing), self._read(), self._tick(), self._give_up(), self._stand_guard())

    async def close(self) -> None:
        """Let go of everything, within seconds."""
        self._state.not_ready = "ending"
        if self._writing:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self._topics))
        await self._index.close()

    async def _provisioned(self) -> None:
        """Return when the index and the broker answer and have what the contract says."""
        self._state.not_ready = "waiting for OpenSearch"
        await self._index.check()
        self._state.not_ready = "waiting for Kafka"
        await check_topics(self._settings)

    async def _read(self) -> None:
        """Feed the agent. Faust ends itself on errors that it can't place: then it is started anew."""
        while True:
            app = faust_app.create_app(self._settings, self._folder, self._decisions.fold, self._partitions_taken)
            try:
                await app.start()
                self._app = app
                await app.wait_until_stopped()
                logger.warning("reading has ended: %r. Starting to read again.", app.crash_reason)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing is lost by beginning again
                logger.warning("reading could not start: %r. Trying again.", error)
            finally:
                self._app = None
                await self._end(app)
            await asyncio.sleep(RESTART_SECONDS)

    def _partitions_taken(self) -> None:
        self._decisions.forget()
        now = time.monotonic()
        self._taken = [when for when in self._taken if now - when < 60] + [now]
        if len(self._taken) == MANY_REBALANCES:
            # Kafka gives an id's partitions to whoever came last with it; the client only says it was forgotten.
            logger.warning(
                "the partitions were given out anew %d times in a minute: does another worker have the instance id %s "
                "too? Give each its own by --instance-id or SCHEDULERLOG_INSTANCE_ID.",
                MANY_REBALANCES, self._settings.instance_id,
            )  # fmt: skip

    async def _end(self, app: faust_app.App) -> None:
        """Stop reading, write what was read, commit it."""
        faust_app.stop_reading(app)
        if self._is_waiting:
            logger.warning("a store is down: what was read and is not written will be read again")
        else:
            await self._in_time("written", self._writers.drained())
        await self._in_time("committed", app.stop())
        self._decisions.forget()

    async def _in_time(self, what: str, step: Coroutine[Any, Any, object]) -> None:
        try:
            await asyncio.wait_for(step, timeout=STOP_SECONDS)
        except TimeoutError:
            logger.warning("not everything that was read is %s yet: it will be read again", what)

    async def _give_up(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._settings.incomplete_after_seconds / 4))
            await self._decisions.expire()

    async def _tick(self) -> None:
        while True:
            self._state.ticked = time.monotonic()
            if self._app is not None:
                self._state.not_ready = "" if faust_app.is_reading(self._app) else "waiting for partitions"
            await asyncio.sleep(TICK_SECONDS)

    async def _stand_guard(self) -> None:
        watchdog = Watchdog(self._settings.stuck_after_seconds)
        while True:
            await asyncio.sleep(1.0)
            if self._app is None or not faust_app.is_reading(self._app):
                continue
            positions = faust_app.positions(self._app)
            self._state.lag = lag(positions)
            if stuck := watchdog.check(positions, time.monotonic(), is_excused=self._is_waiting):
                raise StuckError(f"no progress: {stuck}. Nothing is lost; ending, to be started again.")


async def _shielded(task: asyncio.Task[None]) -> None:
    """Wait for a task that goes on when this waiting is given up."""
    await asyncio.shield(task)


def _policy(settings: Settings) -> WriterPolicy:
    return WriterPolicy(
        linger_seconds=settings.linger_seconds,
        queue_bytes=settings.queue_bytes,
        remembered_bytes=settings.remembered_bytes,
        count_seconds=settings.count_seconds,
        node_pools=settings.node_pools,
    )


async def check_topics(settings: Settings) -> None:
    """Return when a broker answers and has our topics. Raises ``NotProvisionedError``."""
    backoff = Backoff("Kafka", settings.max_backoff_seconds)
    while True:
        try:
            known = await topic_names(settings.kafka_bootstrap_servers)
        except (KafkaError, OSError) as error:
            await backoff.failed(f"{type(error).__name__}: {error}")
            continue
        backoff.worked()
        wanted = (DECISIONS, ATTEMPTS, MESSAGES, FINDINGS, TRENDS, DEAD_LETTERS)
        require([topic.name for topic in wanted], known)
        return

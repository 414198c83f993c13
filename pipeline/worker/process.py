"""The worker as a process, which ends at a signal or at an error that waiting does not cure."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy.ma  # noqa: F401 - np.unique would load it, a tenth of a second, over the first attempt

from pipeline.metrics import TrendsMetrics, WorkerMetrics
from pipeline.settings import WorkerSettings
from pipeline.sinks.kafka import create_topics_sink
from pipeline.trends.process import run as count_trends
from pipeline.worker import faust_app
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.progress import WorkerProgress
from pipeline.worker.write_queue import derive_policy
from pipeline.worker.writer import Writer
from runtime.backoff import Backoff, describe_first_wait
from runtime.files.scratch import scratch_folder
from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.errors import explain_kafka_error
from runtime.kafka.reader import TopicReader
from runtime.kafka.topics import wait_for_topics
from runtime.signals import run_until_first_ends, run_until_stopped
from runtime.telemetry.health import ServeHealth, serving
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas import topics

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.25
STOP_SECONDS: Final = 5.0
"""Limit of each step of a clean stop: publishing what was read, then committing it."""
REVOKE_SECONDS: Final = 1.0
"""Time that other workers wait for what this one still publishes of their new partitions: well below a session."""
RESTART_SECONDS: Final = 1.0
WATCH_SECONDS: Final = 1.0
MANY_REBALANCES: Final = 6
"""Rebalances a minute that two workers with one instance id cause."""
_TOPICS: Final = (
    topics.DECISIONS, topics.ATTEMPTS, topics.MESSAGES, topics.FINDINGS, topics.DEVICE_VERDICTS, topics.ATTEMPT_COUNTS,
    topics.POD_HISTORIES, topics.TRENDS, topics.DEAD_LETTERS, topics.CLOCK,
)  # fmt: skip
_DEAD_AFTER_SECONDS: Final = 20.0
"""Time without an update of the state after which the event loop counts as dead."""


@dataclass(slots=True)
class WorkerState:
    """State that the thread of the health checks reads."""

    ticked_at: float
    not_ready: str = "starting"

    def check_alive(self) -> str:
        silent = time.monotonic() - self.ticked_at
        return f"the event loop has been blocked for {silent:.0f} s" if silent > _DEAD_AFTER_SECONDS else ""

    def check_ready(self) -> str:
        return self.not_ready


async def run(settings: WorkerSettings, tracing: Tracing = NO_TRACING) -> None:
    """Run the worker until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` where topics are missing or have too few partitions, ``StuckError`` where there are
    records to read and no progress, ``SettingError`` where the metrics address is in use.
    """
    await run_until_stopped(work(settings, tracing))


async def work(settings: WorkerSettings, tracing: Tracing = NO_TRACING, serve_health: ServeHealth = serving) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile."""
    metrics, state = WorkerMetrics(), WorkerState(time.monotonic())
    health = serve_health(settings.metrics_address, metrics.registry, state.check_alive, state.check_ready)
    with health, scratch_folder("worker") as folder:
        worker = Worker(settings, metrics, state, folder, tracing)
        try:
            await worker.run()
        finally:
            await worker.close()


class Worker:
    """Agent, writer, topics and Faust's consumer of one worker."""

    def __init__(
        self, settings: WorkerSettings, metrics: WorkerMetrics, state: WorkerState, folder: Path, tracing: Tracing
    ) -> None:
        self._settings = settings
        self._state = state
        self._folder = folder
        self._metrics = metrics
        longest_pause = settings.max_backoff_seconds
        self._topics = create_topics_sink(settings, metrics.topics, longest_pause)
        self._clock = BrokerClock(self._topics, longest_pause)
        metrics.topics.watch_clock(self._clock)
        self._published = TopicReader(settings, longest_pause)
        self._reading = Backoff("Kafka", longest_pause)
        self._progress = WorkerProgress(settings.stuck_after.total_seconds())
        self._writer = Writer(self._topics, self._published, metrics, derive_policy(settings))
        self._decisions = DecisionsAgent(
            self._writer,
            metrics,
            incomplete_after_seconds=settings.incomplete_after.total_seconds(),
            store_devices=settings.store_devices,
            wait_for_right_time=self._clock.wait_until_right,
            tracing=tracing,
        )
        self._app: faust_app.App | None = None
        self._partitions = 0
        """Partitions of decisions at the start."""
        self._rebalanced_at: list[float] = []
        self._writing: asyncio.Task[None] | None = None
        self._watch()

    def _watch(self) -> None:
        watch = self._metrics.watch
        watch("open_attempts", lambda: self._decisions.open_attempts)
        watch("unacknowledged_records", lambda: self._decisions.unacknowledged)
        watch("queued_bytes", lambda: self._writer.queued_bytes)
        watch("cached_summaries", lambda: self._writer.cached_summaries)
        watch("pod_histories", lambda: self._writer.pod_histories)
        watch("lag_records", lambda: self._progress.lag)
        watch("group_lag_records", lambda: self._progress.group_lag)
        watch("is_waiting", lambda: self._is_waiting)
        watch("waiting_seconds", lambda: max(backoff.waiting_seconds for backoff in self._waiting))

    @property
    def _waiting(self) -> tuple[Backoff, ...]:
        connections = (self._topics, self._published, self._clock, self._progress)
        return self._reading, *(connection.waiting for connection in connections)

    @property
    def _is_waiting(self) -> bool:
        return any(backoff.is_waiting for backoff in self._waiting)

    async def run(self) -> None:
        """Read, fold and publish; returns only by an exception."""
        # With the ticks: a worker that waits for the broker is alive, and must not be restarted for it.
        await run_until_first_ends(self._wait_for_topics(), self._update_state())
        self._writing = asyncio.create_task(self._writer.run())
        # `run_until_first_ends` cancels what it runs, but writing has to continue while `_read` drains the writer.
        await run_until_first_ends(
            _await_shielded(self._writing),
            self._read(),
            self._update_state(),
            self._expire(),
            self._watch_progress(),
            self._clock.follow(),
            count_trends(self._settings, TrendsMetrics(self._metrics.registry)),
        )

    async def close(self) -> None:
        """Stop publishing and close the connections, within seconds."""
        # First: `/readyz` shows it while what was read is still being published.
        self._state.not_ready = "ending"
        if self._writing:
            # What is not published was not acknowledged: it is read again by the next owner of the partition.
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await asyncio.gather(self._topics.close(), self._published.close())

    async def _wait_for_topics(self) -> None:
        """Return when Kafka answers and has the topics of this version."""
        counts = await wait_for_topics(self._settings, [topic.name for topic in _TOPICS], self._reading)
        self._partitions = counts[topics.DECISIONS.name]

    async def _read(self) -> None:
        """Feed the agent. Faust stops itself on errors that it does not expect: then a new app is started."""
        while True:
            member = f"{self._settings.instance_id}-of-{self._partitions}"
            app = faust_app.create_app(self._settings, member, self._folder, self._decisions.fold, self._on_revoked)
            try:
                await app.start()
                self._app = app
                self._reading.note_success()
                await app.wait_until_stopped()
                logger.warning("reading has ended: %r. Starting to read again.", app.crash_reason)
            except Exception as error:  # noqa: BLE001 - of any kind: a new app reads from the committed offsets, so nothing is lost
                self._reading.note(explain_kafka_error(error))
            finally:
                self._app = None
                await self._end(app)
            # A broker that refuses at once would otherwise be asked without a pause.
            await asyncio.sleep(RESTART_SECONDS)

    async def _on_revoked(self) -> None:
        self._decisions.forget()
        # Before another worker reads the histories: what is under way would be written behind its first ones.
        await self._finish_within("published", self._writer.wait_until_idle(), REVOKE_SECONDS)
        now = time.monotonic()
        self._rebalanced_at = [moment for moment in self._rebalanced_at if now - moment < 60] + [now]
        if len(self._rebalanced_at) == MANY_REBALANCES:
            # Kafka fences a consumer when another one joins with its instance id, and the client only logs that the
            # broker does not know its member id any more: both rejoin, and fence each other, without end.
            logger.warning(
                "the partitions were reassigned %d times in a minute: does another worker have the instance id %s "
                "too? Give each its own by --instance-id or SCHEDULERLOG_INSTANCE_ID.",
                MANY_REBALANCES, self._settings.instance_id,
            )  # fmt: skip

    async def _end(self, app: faust_app.App) -> None:
        """Stop reading, publish what was read, and commit it."""
        # Reading stops first: otherwise the writer never runs empty.
        faust_app.stop_reading(app)
        # Waiting for a broker that is down would use up the time that Kubernetes gives a pod to end.
        if not self._is_waiting:
            await self._finish_within("published", self._writer.wait_until_drained())
        elif self._decisions.unacknowledged:
            logger.warning("Kafka is down: records that are not published will be read again")
        await self._finish_within("committed", app.stop())
        self._decisions.forget()

    async def _finish_within(self, done: str, step: Coroutine[Any, Any, object], seconds: float = STOP_SECONDS) -> None:
        try:
            async with asyncio.timeout(seconds):
                await step
        except TimeoutError:
            logger.warning("not all records that were read are %s yet: the others will be read again", done)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._settings.incomplete_after.total_seconds() / 4))
            await self._decisions.expire()

    async def _update_state(self) -> None:
        while True:
            self._state.ticked_at = time.monotonic()
            self._state.not_ready = describe_first_wait(self._waiting, self._describe_reading())
            await asyncio.sleep(TICK_SECONDS)

    def _describe_reading(self) -> str:
        """Describe why nothing is read, where no wait is the reason; empty while the worker reads."""
        if self._app is None:
            return "waiting for Kafka"
        return "" if faust_app.is_reading(self._app) else "waiting for partitions"

    async def _watch_progress(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            app = self._app if self._app is not None and faust_app.is_reading(self._app) else None
            await self._progress.check(app, is_excused=self._is_waiting)


async def _await_shielded(task: asyncio.Task[None]) -> None:
    """Wait for a task that continues when this waiting is cancelled."""
    await asyncio.shield(task)

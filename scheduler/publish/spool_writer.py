"""Writer of events into the spool, from where the publisher sends them to Kafka."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from runtime.telemetry.logs import identify_subject
from scheduler.metrics import Metrics
from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.spool import Spool
from schemas.codec.records import UnencodableError, encode
from schemas.codec.trace_context import NO_TRACE, Trace, with_trace
from schemas.events import (
    AttemptEvent,
    DevicesJudged,
    Event,
    NodeEvent,
    NodeStateChanged,
    PodObserved,
    SchedulerObserved,
)
from schemas.ids import count_microseconds
from schemas.topics import DECISIONS, NODE_STATES, NODES, PODS, SCHEDULERS, Topic

log = logging.getLogger(__name__)


class SpoolWriter:
    """Appends the records of events to the spool. Never raises for the disk: see `Spool.append`."""

    def __init__(self, spool: Spool, clock: Callable[[], datetime], metrics: Metrics) -> None:
        self._spool, self._clock, self._metrics = spool, clock, metrics
        self._unencodable = 0

    def write(self, events: Iterable[Event], trace: Trace = NO_TRACE) -> None:
        """Append the events in one write. An event that has no JSON form is logged, counted and left out. trace: the
        trace that they belong to."""
        now_us = count_microseconds(self._clock())
        entries = [entry for event in events if (entry := self._to_entry(event, now_us, trace))]
        self._spool.append(entries)

    @property
    def lost(self) -> int:
        """Number of records other than device detail that were lost so far because the spool was full."""
        return self._spool.dropped_verdicts

    @property
    def losses(self) -> int:
        """Number of records of any kind that were lost so far: device detail included, and those without JSON."""
        return self._spool.dropped_verdicts + self._spool.dropped_detail + self._unencodable

    async def flush(self) -> None:
        """Return when all events written so far are durable."""
        await self._spool.flush()

    def _to_entry(self, event: Event, now_us: int, trace: Trace) -> Entry | None:
        topic = _choose_topic(event)
        try:
            record = with_trace(encode(event, topic.name), trace)
        except UnencodableError:
            fields = (
                identify_subject(attempt=event.attempt_id, pod=event.pod) if isinstance(event, AttemptEvent) else {}
            )
            log.exception("the event about %s has no JSON form and is lost", event.key, extra=fields)
            self._unencodable += 1
            self._metrics.unencodable.inc()
            return None
        if isinstance(event, DevicesJudged):
            # May be dropped when the spool is full: the node verdicts hold the counts too (docs/decisions/0004).
            return Entry(EntryKind.DETAIL, record, now_us, len(event.verdict))
        return Entry(EntryKind.VERDICT, record, now_us)


def _choose_topic(event: Event) -> Topic:
    if isinstance(event, NodeEvent):
        return NODE_STATES if isinstance(event, NodeStateChanged) else NODES
    if isinstance(event, SchedulerObserved):
        return SCHEDULERS
    return PODS if isinstance(event, PodObserved) else DECISIONS

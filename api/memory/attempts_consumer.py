"""Consumer of the attempts topic: reads its records into memory, and measures the delay of decisions."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from api.memory.change_log import ChangeLog
from api.memory.latest_attempts import LatestAttempts, Taken
from api.memory.topic_follower import TopicFollower, TopicState
from api.memory.wait_log import OF_ATTEMPTS, WaitLog
from runtime.kafka.record import identify_attempt, identify_record
from runtime.settings.kafka_connection import KafkaConnection
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.records import Rejected, decode
from schemas.codec.trace_context import trace_of
from schemas.events import SCHEDULER, AttemptRepeated, AttemptSummarized, build_pod_key
from schemas.topics import ATTEMPTS

ObserveDelay = Callable[[str, float], None]
"""Observes the source of an attempt, and the seconds from its latest event to now."""
ARCHIVE_SECONDS: Final = 3600.0
"""Age from which attempts of a log count as archived, because it was read long after it was written. Attempts that the
scheduler itself reports are late at any age.
"""


def measure_decision_delay(event: AttemptSummarized | AttemptRepeated, now: float) -> tuple[str, float] | None:
    """Measure the seconds since the attempt's latest event, with the source that reported it; None for an archived log.

    ``now`` is Unix time in seconds.
    """
    # A summary in parts counts once, with its last part.
    if isinstance(event, AttemptSummarized) and event.part + 1 < event.parts:
        return None
    source = event.reports[0].source if event.reports else ""
    # A version is the time of the latest event. Clocks differ: a delay is never negative.
    seconds = max(now - event.version / 1_000_000, 0.0)
    return None if source != SCHEDULER and seconds > ARCHIVE_SECONDS else (source, seconds)


log = logging.getLogger(__name__)

_SPAN: Final = f"remember {ATTEMPTS.name}"


class AttemptsTopic(TopicFollower):
    """Consumer that fills ``latest``. ``max_records`` bounds the replay, over all partitions."""

    def __init__(
        self,
        kafka: KafkaConnection,
        latest: LatestAttempts,
        max_records: int,
        observe_delay: ObserveDelay,
        tracing: Tracing = NO_TRACING,
        changes: ChangeLog | None = None,
        waits: WaitLog | None = None,
    ) -> None:
        """Fill ``latest``, and append every change to ``changes`` and ``waits``."""
        super().__init__(kafka, ATTEMPTS, max_records)
        self._tracing, self._latest, self._observe_delay = tracing, latest, observe_delay
        self._changes = ChangeLog(0, 0) if changes is None else changes
        self._waits = WaitLog(0, 0) if waits is None else waits

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int]) -> None:
        """Begin a session at ``offsets``; in the partitions ``jumped`` it does not continue the previous session."""
        self._changes.begin(offsets, jumped)
        self._waits.begin(offsets, jumped, OF_ATTEMPTS)

    def take(self, record: Any) -> None:
        """Put a record into memory."""
        event, taken = take_record(record.value, record.headers, self._latest, self.state, time.time)
        pod = build_pod_key(event.cluster, event.pod) if event else ""
        self._changes.read(record.partition, record.offset, taken, pod)
        self._waits.read_attempt(record.partition, record.offset, taken, pod)
        if event and self._tracing.is_on and self.state.replayed:
            self._trace(record, event)
        # The replay reads old decisions, whose delay says nothing.
        if event and self.state.replayed and (delay := measure_decision_delay(event, time.time())):
            self._observe_delay(*delay)

    def _trace(self, record: Any, event: AttemptSummarized | AttemptRepeated) -> None:
        """Record a span from the time of the record until answers contain it."""
        parent, began_ns = trace_of(record.headers), 1_000_000 * record.timestamp
        is_whole = isinstance(event, AttemptRepeated) or event.part + 1 == event.parts
        if parent and is_whole:
            self._tracing.begin(_SPAN, parent, identify_attempt(event), kind="consumer", began_ns=began_ns).end()


def take_record(
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
    latest: LatestAttempts,
    state: TopicState,
    clock: Callable[[], float],
) -> tuple[AttemptSummarized | AttemptRepeated | None, Taken | None]:
    """Put one record into memory and return it with its change; count and skip a record that is no attempt.

    ``clock`` returns Unix time in seconds.
    """
    state.records += 1
    event = decode(value, headers)
    if isinstance(event, AttemptSummarized) and value is not None:
        return event, latest.add(event, value, clock())
    if isinstance(event, AttemptRepeated):
        return event, latest.add_retry(event, clock())
    state.rejected += 1
    log.debug(
        "attempts topic: skipped a record, not an attempt: %s",
        event if isinstance(event, Rejected) else event.TYPE,
        extra=identify_record(headers),
    )
    return None, None

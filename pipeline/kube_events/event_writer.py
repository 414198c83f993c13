"""Writer of messages as events: waits while the API server can't answer, dead-letters what it refuses."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from engine.summaries.foreign_namespaces import KnownNamespaces
from pipeline.dead_letter import to_dead_letter
from pipeline.kube_events.api_server import EventsApi, count_in_event, read_events, read_uid
from pipeline.kube_events.event_series import EventSeries
from pipeline.metrics import EventsMetrics
from runtime.backoff import Backoff
from runtime.kafka.record import DecodedRecord, Record, identify_record
from runtime.kubernetes.errors import KubeApiError
from runtime.settings.names import DEFAULT_CLUSTER
from schemas.codec.records import EncodedRecord, Rejected, decode
from schemas.events import MessagesEmitted, PodMessage

logger = logging.getLogger(__name__)

MAX_CONCURRENT: Final = 8
"""Requests that wait for the API server at the same time."""


@dataclass(frozen=True, slots=True)
class EventPolicy:
    cluster: str = DEFAULT_CLUSTER
    """Only messages of this cluster: its API server has no pod of another one."""
    schedulers: frozenset[str] = frozenset()
    """Only messages of these schedulers; empty: any. Leave out a scheduler that writes events of its own."""
    max_age: timedelta = timedelta(hours=1)
    """An older message is passed over: the API server would have dropped its event by now (``--event-ttl``)."""
    longest_pause_seconds: float = 10.0


class Topics(Protocol):
    async def send(self, outgoing: Sequence[EncodedRecord]) -> object: ...


class EventWriter:
    def __init__(self, api: EventsApi, topics: Topics, metrics: EventsMetrics, policy: EventPolicy) -> None:
        self._api, self._topics, self._metrics, self._policy = api, topics, metrics, policy
        self._backoff = Backoff("the API server", policy.longest_pause_seconds)
        self._events: EventSeries | None = None
        self._namespaces = KnownNamespaces()
        self._requests = asyncio.Semaphore(MAX_CONCURRENT)

    @property
    def is_waiting(self) -> bool:
        """True while the writer waits for the API server."""
        return self._backoff.is_waiting

    def forget(self) -> None:
        """Read all events again before the next batch: partitions were reassigned, and other processes have written
        events."""
        self._events = None

    async def write(self, records: Sequence[Record], now: datetime) -> None:
        """Return when every message is counted by an event, dead-lettered with its record or passed over."""
        wanted = [decoded for record in records if (decoded := await self._read(record, now))]
        with_uid = [decoded for decoded in await asyncio.gather(*map(self._with_uid, wanted)) if decoded]
        of_records = [(message, decoded.record) for decoded in with_uid for message in decoded.event.list_messages()]
        # By identity: two records may hold equal messages.
        records_by_message = {id(message): record for message, record in of_records}
        events = await self._load_events()
        assigned = events.assign([message for message, _ in of_records])
        await asyncio.gather(
            *(
                self._write_event(events, name, messages, [records_by_message[id(message)] for message in messages])
                for (_, name), messages in assigned.items()
            )
        )
        events.prune(now)
        self._metrics.known_events.set(len(events))

    async def _load_events(self) -> EventSeries:
        # Without them a changed text would begin a new event although a fresh one counts its series.
        # Again after each rebalance: the owner before may have written events until the last moment.
        while self._events is None:
            try:
                self._events = await read_events(self._api)
            except KubeApiError as error:
                await self._backoff.wait_after_failure(_explain(error))
            else:
                self._backoff.note_success()
        return self._events

    async def _read(self, record: Record, now: datetime) -> DecodedRecord[MessagesEmitted] | None:
        event = decode(record.value, record.headers)
        if isinstance(event, MessagesEmitted):
            # Also of those that are passed over: others may name their pods.
            self._namespaces.add([event.pod.namespace])
            outcome = self._explain_passing(event, now)
            if not outcome:
                return DecodedRecord(event, record)
            self._count(outcome, len(event.lines))
        else:
            content = str(event) if isinstance(event, Rejected) else event.TYPE
            await self._reject([record], f"no messages: {content}")
            self._count("rejected")
        return None

    def _explain_passing(self, messages: MessagesEmitted, now: datetime) -> str:
        """Explain why the messages are not written; empty if they are."""
        if messages.cluster != self._policy.cluster:
            return "passed_over"
        if self._policy.schedulers and messages.scheduler not in self._policy.schedulers:
            return "passed_over"
        return "too_old" if now - messages.reported_at > self._policy.max_age else ""

    async def _with_uid(self, decoded: DecodedRecord[MessagesEmitted]) -> DecodedRecord[MessagesEmitted] | None:
        """Add the UID of the messages' pod, by which ``kubectl describe`` finds events; None if it was deleted."""
        messages, pod = decoded.event, decoded.event.pod
        if pod.uid:
            return decoded
        while True:
            try:
                async with self._requests:
                    uid = await read_uid(self._api, pod.namespace, pod.name)
            except KubeApiError as error:
                await self._backoff.wait_after_failure(_explain(error))
                continue
            if not uid:
                self._count("pod_gone", len(messages.lines))
                return None
            with_uid = messages.model_copy(update={"pod": pod.model_copy(update={"uid": uid})})
            return DecodedRecord(with_uid, decoded.record)

    async def _write_event(
        self, events: EventSeries, name: str, messages: Sequence[PodMessage], records: Sequence[Record]
    ) -> None:
        while True:
            try:
                async with self._requests:
                    counted = await count_in_event(self._api, events, name, messages, self._namespaces)
            except KubeApiError as error:
                # No dead letter: Kubernetes deletes the events of a namespace with it, so nobody could read this one.
                if is_gone(error):
                    self._count("pod_gone", len(messages))
                    return
                if is_refused(error):
                    await self._reject(records, f"the API server refuses event {name}: {error}")
                    self._count("refused", len(messages))
                    return
                await self._backoff.wait_after_failure(_explain(error))
            else:
                self._backoff.note_success()
                self._count("counted", counted)
                self._count("repeated", len(messages) - counted)
                return

    async def _reject(self, records: Sequence[Record], cause: str) -> None:
        # All of an event are about one pod.
        fields = identify_record(records[0].headers)
        logger.error("%d messages are dead-lettered: %.500s", len(records), cause, extra=fields)
        # Before the commit: a record that is neither written nor here would be lost.
        await self._topics.send([to_dead_letter(record, cause, datetime.now(UTC)) for record in records])

    def _count(self, outcome: str, count: int = 1) -> None:
        self._metrics.messages.labels(outcome).inc(count)


def is_gone(error: KubeApiError) -> bool:
    """Tell whether the namespace is deleted, or being deleted."""
    # For the latter the API server answers 403 like for a missing right; only the text distinguishes them.
    return error.is_missing or (error.status == 403 and "is being terminated" in str(error))


def is_refused(error: KubeApiError) -> bool:
    """Tell whether the API server will never accept this request, however often it is sent."""
    return error.status in (400, 413, 422)


def _explain(error: KubeApiError) -> str:
    if error.status in (401, 403):
        return f"{error} (the role needs create, get, list, patch of events.events.k8s.io and get of pods)"
    return str(error)

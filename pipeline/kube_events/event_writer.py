"""A batch of messages told to the API server: what can be waited for is waited for, what it refuses is set aside."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol

from kube.errors import KubeApiError
from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.kube_events.api_server import Api, read_book, tell, uid_of
from pipeline.kube_events.event_series import Book
from pipeline.kube_events.metrics import Metrics
from pipeline.sinks.backoff import Backoff
from pipeline.sinks.kafka import Outgoing
from schemas.codec.records import decode
from schemas.events import MessageEmitted

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Requests on their way together."""


@dataclass(frozen=True, slots=True)
class Policy:
    schedulers: frozenset[str] = frozenset()
    """Only what these decided; empty: any. A scheduler that tells Kubernetes itself is best left out."""
    most_age: timedelta = timedelta(hours=1)
    """An older message is passed over: the API server would have dropped its event by now (``--event-ttl``)."""
    longest_pause_seconds: float = 10.0


class Topics(Protocol):
    async def send(self, outgoing: Sequence[Outgoing]) -> None: ...


class Read(NamedTuple):
    message: MessageEmitted
    source: Source


class Teller:
    def __init__(self, api: Api, topics: Topics, metrics: Metrics, policy: Policy) -> None:
        self._api, self._topics, self._metrics, self._policy = api, topics, metrics, policy
        self._backoff = Backoff("the API server", policy.longest_pause_seconds)
        self._book: Book | None = None
        self._room = asyncio.Semaphore(AT_ONCE)

    @property
    def is_waiting(self) -> bool:
        """Is the API server being waited for?"""
        return self._backoff.is_waiting

    def forget(self) -> None:
        """Partitions have moved: what others wrote meanwhile is read before the next batch."""
        self._book = None

    async def tell(self, records: Sequence[Source], now: datetime) -> None:
        """Return when every message is counted by an event, or never will be."""
        known = [read for record in records if (read := await self._read(record, now))]
        whole = [read for read in await asyncio.gather(*map(self._with_uid, known)) if read]
        sources = {id(read.message): read.source for read in whole}
        book = await self._known_events()
        assigned = book.assign([read.message for read in whole])
        await asyncio.gather(
            *(
                self._tell_event(book, name, messages, [sources[id(each)] for each in messages])
                for (_, name), messages in assigned.items()
            )
        )
        book.prune(now)
        self._metrics.known.set(len(book))

    async def _known_events(self) -> Book:
        while self._book is None:
            try:
                self._book = await read_book(self._api)
            except KubeApiError as error:
                await self._backoff.failed(_advice(error))
            else:
                self._backoff.worked()
        return self._book

    async def _read(self, record: Source, now: datetime) -> Read | None:
        event = decode(record.value, record.headers)
        if isinstance(event, MessageEmitted):
            outcome = self._outcome(event, now)
            if not outcome:
                return Read(event, record)
            self._count(outcome)
        else:
            await self._set_aside([record], f"not a message: {event if not hasattr(event, 'TYPE') else event.TYPE}")
            self._count("rejected")
        return None

    def _outcome(self, message: MessageEmitted, now: datetime) -> str:
        """Why it is not written; empty where it is."""
        if self._policy.schedulers and message.scheduler not in self._policy.schedulers:
            return "passed_over"
        return "too_old" if now - message.reported_at > self._policy.most_age else ""

    async def _with_uid(self, read: Read) -> Read | None:
        """``kubectl describe`` finds the events of a pod by its UID; None where there is no such pod."""
        message, pod = read.message, read.message.pod
        if pod.uid:
            return read
        while True:
            try:
                async with self._room:
                    uid = await uid_of(self._api, pod.namespace, pod.name)
            except KubeApiError as error:
                await self._backoff.failed(_advice(error))
                continue
            if not uid:
                self._count("pod_gone")
                return None
            return Read(message.model_copy(update={"pod": pod.model_copy(update={"uid": uid})}), read.source)

    async def _tell_event(
        self, book: Book, name: str, messages: Sequence[MessageEmitted], sources: Sequence[Source]
    ) -> None:
        while True:
            try:
                async with self._room:
                    counted = await tell(self._api, book, name, messages)
            except KubeApiError as error:
                if is_gone(error):
                    self._count("pod_gone", len(messages))
                    return
                if is_refused(error):
                    await self._set_aside(sources, f"the API server refuses event {name}: {error}")
                    self._count("refused", len(messages))
                    return
                await self._backoff.failed(_advice(error))
            else:
                self._backoff.worked()
                self._count("counted", counted)
                self._count("repeated", len(messages) - counted)
                return

    async def _set_aside(self, sources: Sequence[Source], cause: str) -> None:
        logger.error("set aside: %.500s", cause)
        await self._topics.send([dead_letter(source, cause, datetime.now(UTC)) for source in sources])

    def _count(self, outcome: str, count: int = 1) -> None:
        self._metrics.messages.labels(outcome).inc(count)


def is_gone(error: KubeApiError) -> bool:
    """The namespace is gone, or going: the API server says the latter in words alone."""
    return error.is_missing or (error.status == 403 and "is being terminated" in str(error))


def is_refused(error: KubeApiError) -> bool:
    """Will the same request never be taken?"""
    return error.status in (400, 413, 422)


def _advice(error: KubeApiError) -> str:
    if error.status in (401, 403):
        return f"{error} (the role needs create, get, list, patch of events.events.k8s.io and get of pods)"
    return str(error)

"""The events of one watch, from its position in the log until its end."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from api.http.cluster import Cluster
from api.http.errors import ExpiredError, UnavailableError
from api.http.watch_query import to_version
from api.memory.change_log import Change, ChangeLog, Offsets, OffsetsGoneError, Subscription
from api.memory.latest_attempts import CachedAttempt
from api.memory.wait_log import State, WaitLog
from api.watch.shared_events import AnyChange, SharedEvents
from api.watch.views import (
    KINDS,
    Decoded,
    DecodedState,
    ViewName,
    decode_state,
    encode_bookmark,
    encode_event,
    encode_object,
    matches,
)

BOOKMARK_SECONDS: Final = 15.0
"""Interval of bookmarks, which also keep Server-Sent Events open behind a proxy that ends silent answers."""
FROM_THE_BEGINNING: Final = "0"
"""resourceVersion that begins with everything in memory, as an empty one does."""
BATCH_BYTES: Final = 64 * 1024
_BEHIND_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.05

AnyLog = ChangeLog | WaitLog
Find = Callable[[Change], Awaitable[CachedAttempt | None]]
"""Finds the complete attempt of a change that memory has only in part; None if the index lacks it too."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Watch of one caller."""

    view: ViewName
    cluster: Cluster
    is_sse: bool
    has_bookmarks: bool
    seconds: float
    """Time after which it ends."""
    is_for_all: bool = False
    """True for a watch of all namespaces: only then texts name pods of other namespaces."""
    filters: Mapping[str, str] = field(default_factory=dict)
    """Parameters that narrow it, to their values."""

    def encode_bookmark(self, version: str, *, ends_initial: bool = False) -> bytes:
        return encode_bookmark(KINDS[self.view], version, is_sse=self.is_sse, ends_initial=ends_initial)


async def subscribe(log: AnyLog, key: tuple[str, ...], since: Offsets | None, watch: Watch) -> Subscription:
    """Subscribe to the log from ``since``, or from its end. Raises ``ExpiredError``, ``UnavailableError``."""
    until = time.monotonic() + min(_BEHIND_SECONDS, watch.seconds)
    # Another replica may have read further.
    while since and not log.has_read(since):
        if time.monotonic() > until:
            raise UnavailableError(
                "this replica has not read as far as the resourceVersion", "Try again, or watch without it."
            )
        await asyncio.sleep(_LOOK_SECONDS)
    try:
        return log.subscribe(key, since, only_latest=watch.view != "attempts")
    except OffsetsGoneError:
        raise to_expired_error() from None


def to_expired_error() -> ExpiredError:
    """Build the error for a resourceVersion before the log's beginning."""
    return ExpiredError(
        "the resourceVersion is older than the changes in memory",
        "Read the answer without watch again, and watch from now: without resourceVersion.",
    )


def to_lost_error() -> ExpiredError:
    """Build the error for a watch that lost its position in the log."""
    return ExpiredError(
        "the watch lags behind the changes in memory: its reader is too slow, or the topic was created again",
        "Read the answer without watch again, and watch from now: without resourceVersion.",
    )


async def iterate_events(
    log: AnyLog,
    shared: SharedEvents,
    watch: Watch,
    subscription: Subscription,
    initial: Sequence[State] | None,
    find: Find,
) -> AsyncIterator[bytes]:
    """Iterate over the events, one or more at a time, until the watch's time is over. Raises ``ExpiredError``.

    ``initial``: attempts or waiting pods in memory at the subscription; None for a watch that does not begin with them.
    """
    ends_at = time.monotonic() + watch.seconds
    if initial is not None:
        version = to_version(subscription.since)
        async for event in _iterate_initial_events(shared, watch, initial, version):
            yield event
        if watch.has_bookmarks:
            yield watch.encode_bookmark(version, ends_initial=True)
    attempts = (state for state in initial or () if isinstance(state, CachedAttempt))
    newest = max((attempt.recency for attempt in attempts), default=None) if watch.view == "pod" else None
    while (left := ends_at - time.monotonic()) > 0 and not subscription.is_closed:
        async for batch in _iterate_batches(log, shared, watch, subscription, newest, find):
            yield batch
        if subscription.is_lost:
            raise to_lost_error()
        await _wait_for_arrival(subscription, min(left, BOOKMARK_SECONDS))
        # The last bookmark follows after the loop.
        if watch.has_bookmarks and not subscription.arrived.is_set() and left > BOOKMARK_SECONDS:
            yield watch.encode_bookmark(to_version(log.offsets))
    if watch.has_bookmarks and not subscription.waiting:
        yield watch.encode_bookmark(to_version(log.offsets))


async def _iterate_initial_events(
    shared: SharedEvents, watch: Watch, initial: Sequence[State], version: str
) -> AsyncIterator[bytes]:
    """Iterate over the initial events. Only the last one has a version: a client that resumes earlier begins again."""
    held: Decoded | DecodedState | None = None
    for state in initial:
        await shared.turn()
        decoded = decode_state(state, is_for_all=watch.is_for_all)
        if matches(decoded.fields, watch.filters):
            if held:
                yield _encode_added(watch, held, "")
            held = decoded
    if held:
        yield _encode_added(watch, held, version)


def _encode_added(watch: Watch, decoded: Decoded | DecodedState, version: str) -> bytes:
    body = encode_object(watch.view, watch.cluster, decoded, version or FROM_THE_BEGINNING)
    return encode_event("ADDED", body, version, is_sse=watch.is_sse)


async def _iterate_batches(
    log: AnyLog,
    shared: SharedEvents,
    watch: Watch,
    subscription: Subscription,
    newest: tuple[float, int, str] | None,
    find: Find,
) -> AsyncIterator[bytes]:
    """Iterate over events of waiting changes, about ``BATCH_BYTES`` at a time; for a pod, those after ``newest``."""
    subscription.arrived.clear()
    batch: list[bytes] = []
    for change in _skip_older(log.take(subscription), newest):
        complete = change
        if isinstance(change, Change) and watch.view == "pod" and not change.attempt.values:
            attempt = await find(change)
            if attempt is None:
                raise to_lost_error()
            complete = replace(change, attempt=attempt)
        batch.append(
            await shared.encode_change(
                watch.view, watch.cluster, complete, watch.filters, is_sse=watch.is_sse, is_for_all=watch.is_for_all
            )
        )
        if sum(map(len, batch)) > BATCH_BYTES:
            yield b"".join(batch)
            batch.clear()
    if any(batch):
        yield b"".join(batch)


def _skip_older(changes: Iterator[AnyChange], newest: tuple[float, int, str] | None) -> Iterator[AnyChange]:
    for change in changes:
        if newest is None or not isinstance(change, Change) or change.attempt.recency > newest:
            yield change


async def _wait_for_arrival(subscription: Subscription, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await subscription.arrived.wait()

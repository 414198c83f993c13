"""The events of one watch, from its place in the log until it ends."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from api.http.cluster import Cluster
from api.http.errors import ExpiredError, UnavailableError
from api.memory.change_log import Change, ChangeLog, Offsets, OffsetsGoneError, Subscription, version_of
from api.memory.latest_attempts import CachedAttempt
from api.watch.framing import bookmark, framed
from api.watch.shown import ShownChanges
from api.watch.views import KINDS, Decoded, ViewName, matches, object_of

BOOKMARK_SECONDS: Final = 15.0
"""Also what keeps Server-Sent Events open where a proxy ends silent answers."""
FROM_THE_BEGINNING: Final = "0"
"""The resourceVersion that asks for what memory has, as none does."""
BATCH_BYTES: Final = 64 * 1024
_BEHIND_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.05

Find = Callable[[Change], Awaitable[CachedAttempt | None]]
"""The attempt of a change as a whole, where memory does not have it; None where nobody has."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What one caller watches."""

    view: ViewName
    cluster: Cluster
    is_sse: bool
    has_bookmarks: bool
    seconds: float
    """After which it ends."""
    is_for_all: bool = False
    """Are all namespaces watched? Only then texts name pods of another namespace than their own pod's."""
    wanted: Mapping[str, str] = field(default_factory=dict)
    """Parameter to value, of those that narrow it."""

    def bookmark(self, version: str, *, ends_initial: bool = False) -> bytes:
        return bookmark(KINDS[self.view], version, is_sse=self.is_sse, ends_initial=ends_initial)


async def subscribed(log: ChangeLog, key: tuple[str, ...], since: Offsets | None, watch: Watch) -> Subscription:
    """A place in the log behind ``since``, or at its end. Raises ``ExpiredError``, ``UnavailableError``."""
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
        raise expired() from None


def expired() -> ExpiredError:
    return ExpiredError(
        "the resourceVersion is older than what memory holds",
        "Read the answer without watch again, and watch from now: without resourceVersion.",
    )


def lost() -> ExpiredError:
    return ExpiredError(
        "the watch is behind by more than memory holds: its reader is too slow, or the topic was created again",
        "Read the answer without watch again, and watch from now: without resourceVersion.",
    )


async def events(
    log: ChangeLog,
    shown: ShownChanges,
    watch: Watch,
    subscription: Subscription,
    initial: Sequence[CachedAttempt] | None,
    find: Find,
) -> AsyncIterator[bytes]:
    """One or more events at a time, until the watch's time is over. Raises ``ExpiredError``.

    ``initial`` is what memory had when the subscription was made; None for a watch that does not begin with it.
    """
    ends_at = time.monotonic() + watch.seconds
    if initial is not None:
        version = version_of(subscription.since)
        async for event in _initial_events(shown, watch, initial, version):
            yield event
        if watch.has_bookmarks:
            yield watch.bookmark(version, ends_initial=True)
    newest = max((attempt.recency for attempt in initial or ()), default=None) if watch.view == "pod" else None
    while (left := ends_at - time.monotonic()) > 0 and not subscription.is_closed:
        async for batch in _batches(log, shown, watch, subscription, newest, find):
            yield batch
        if subscription.is_lost:
            raise lost()
        await _arrived(subscription, min(left, BOOKMARK_SECONDS))
        # At the end there is one anyway.
        if watch.has_bookmarks and not subscription.arrived.is_set() and left > BOOKMARK_SECONDS:
            yield watch.bookmark(log.version)
    if watch.has_bookmarks and not subscription.waiting:
        yield watch.bookmark(log.version)


async def _initial_events(
    shown: ShownChanges, watch: Watch, initial: Sequence[CachedAttempt], version: str
) -> AsyncIterator[bytes]:
    """The last one alone names the place: who comes back after an earlier one begins again."""
    held: Decoded | None = None
    for attempt in initial:
        await shown.turn()
        decoded = Decoded(attempt, watch.is_for_all)
        is_listed = watch.view != "pending" or attempt.status != "succeeded"
        if is_listed and matches(decoded.fields, watch.wanted):
            if held:
                yield _added(watch, held, "")
            held = decoded
    if held:
        yield _added(watch, held, version)


def _added(watch: Watch, decoded: Decoded, version: str) -> bytes:
    body = object_of(watch.view, watch.cluster, decoded, version or FROM_THE_BEGINNING)
    return framed("ADDED", body, version, is_sse=watch.is_sse)


async def _batches(
    log: ChangeLog,
    shown: ShownChanges,
    watch: Watch,
    subscription: Subscription,
    newest: tuple[float, int, str] | None,
    find: Find,
) -> AsyncIterator[bytes]:
    """The events of the changes that wait, about ``BATCH_BYTES`` at a time; of a pod those after ``newest``."""
    subscription.arrived.clear()
    batch: list[bytes] = []
    for change in _after(log.take(subscription), newest):
        whole = change
        if watch.view == "pod" and not change.attempt.values:
            found = await find(change)
            if found is None:
                raise lost()
            whole = replace(change, attempt=found)
        batch.append(
            await shown.event(
                watch.view, watch.cluster, whole, watch.wanted, is_sse=watch.is_sse, is_for_all=watch.is_for_all
            )
        )
        if sum(map(len, batch)) > BATCH_BYTES:
            yield b"".join(batch)
            batch.clear()
    if any(batch):
        yield b"".join(batch)


def _after(changes: Iterator[Change], newest: tuple[float, int, str] | None) -> Iterator[Change]:
    return (change for change in changes if newest is None or change.attempt.recency > newest)


async def _arrived(subscription: Subscription, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await subscription.arrived.wait()
